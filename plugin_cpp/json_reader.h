/**
 * Typed access to the JSON of xgb_dp. A field that is missing or out of range is an error. There
 * are no defaults, so no training runs without a calibration.
 *
 * Parts of a plan derive from the reader: the line that declares a field also reads and checks it.
 * They read only during construction, because the JSON may be gone afterwards.
 */
#pragma once

#include <algorithm>  // for find, max
#include <cmath>      // for isfinite
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t, uint64_t
#include <cstdlib>    // for strtod
#include <limits>     // for numeric_limits
#include <sstream>    // for ostringstream
#include <string>     // for string, to_string
#include <utility>    // for move
#include <vector>     // for vector

#include "plugin_cpp/release/masking.h"  // for Masking
#include "xgboost/json.h"     // for Json, get, IsA, Array, Object, Integer, String, Boolean
#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
inline void Require(bool holds, std::string const& what) {
  CHECK(holds) << "The plan (`dp_plan`) is not valid: " << what
               << " xgb_dp computes the plan when you call `xgboost.train` with `dp_epsilon` and "
                  "`dp_delta`; do not write it by hand.";
}

/** @brief Names of the privacy units, indexed by whether the unit is a person. */
inline constexpr char const* kUnits[] = {"row", "person"};

class JsonReader {
 private:  // first, because deduced return types must be known before they are used
  void Check(bool holds, std::string const& key, std::string const& what) const {
    Require(holds, "`" + path_ + key + "` " + what);
  }
  template <typename T>
  [[nodiscard]] auto const& Get(std::string const& key, char const* otherwise) const {
    auto const& v = this->At(key);
    this->Check(IsA<T>(v), key, otherwise);
    return get<T const>(v);
  }

 public:
  JsonReader(Json const& in, std::string path) : path_{std::move(path)} {
    this->Check(IsA<Object>(in), "", "is not an object.");
    object_ = &get<Object const>(in);
  }

  [[nodiscard]] bool Has(std::string const& key) const {
    return object_->find(key) != object_->cend();
  }
  [[nodiscard]] Json const& At(std::string const& key) const {
    auto it = object_->find(key);
    this->Check(it != object_->cend(), key, "is missing.");
    return it->second;
  }
  [[nodiscard]] JsonReader Part(std::string const& key) const {
    return {this->At(key), path_ + key + "."};
  }
  [[nodiscard]] std::int64_t Int(std::string const& key, std::int64_t lower,
                                 std::int64_t upper) const {
    auto value = this->Get<Integer>(key, "is not an integer.");
    this->Check(value >= lower && value <= upper, key,
                "is outside [" + std::to_string(lower) + ", " + std::to_string(upper) + "].");
    return value;
  }
  [[nodiscard]] bool Bool(std::string const& key) const {
    return this->Get<Boolean>(key, "is not a boolean.");
  }
  [[nodiscard]] std::string Text(std::string const& key) const {
    return this->Get<String>(key, "is not a string.");
  }
  [[nodiscard]] std::vector<Json> const& List(std::string const& key) const {
    return this->Get<Array>(key, "is not a list.");
  }
  template <typename T>
  [[nodiscard]] std::vector<T> Ints(std::string const& key, std::int64_t lower,
                                    std::int64_t upper) const {
    return ParseInts<T>(this->At(key), key, lower, upper);
  }
  template <typename T>
  [[nodiscard]] static std::vector<T> ParseInts(Json const& list, std::string const& key,
                                                std::int64_t lower, std::int64_t upper) {
    Require(IsA<Array>(list), "`" + key + "` is not a list.");
    std::vector<T> out;
    for (auto const& v : get<Array const>(list)) {
      Require(IsA<Integer>(v) && get<Integer const>(v) >= lower && get<Integer const>(v) <= upper,
              "an entry of `" + key + "` is not an integer in [" + std::to_string(lower) + ", " +
                  std::to_string(upper) + "].");
      out.push_back(static_cast<T>(get<Integer const>(v)));
    }
    return out;
  }
  /** @brief A real number, sent as a string: XGBoost parses JSON numbers as 32-bit floats. */
  [[nodiscard]] double Real(std::string const& key,
                            double lower = std::numeric_limits<double>::lowest(),
                            double upper = std::numeric_limits<double>::max()) const {
    return this->Number(key, this->Text(key), lower, upper);
  }
  [[nodiscard]] std::vector<double> Reals(std::string const& key, double lower,
                                          double upper) const {
    std::vector<double> out;
    for (auto const& v : this->List(key)) {
      this->Check(IsA<String>(v), key, "has an entry that is not a string.");
      out.push_back(this->Number(key, get<String const>(v), lower, upper));
    }
    return out;
  }
  [[nodiscard]] static double ParseNumber(std::string const& where, std::string const& text) {
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    Require(end != text.c_str() && *end == '\0' && std::isfinite(value),
            "`" + where + "` is not a number.");
    return value;
  }
  /** @param names Names of the values of the enumeration, in order. */
  template <typename T, std::size_t kN>
  [[nodiscard]] T Enum(std::string const& key, char const* const (&names)[kN]) const {
    auto it = std::find(names, names + kN, this->Text(key));
    this->Check(it != names + kN, key, "has an unknown value.");
    return static_cast<T>(it - names);
  }

 private:
  [[nodiscard]] double Number(std::string const& key, std::string const& text, double lower,
                              double upper) const {
    auto value = ParseNumber(path_ + key, text);
    std::ostringstream ends;
    ends << "is not a number in [" << lower << ", " << upper << "].";
    this->Check(value >= lower && value <= upper, key, ends.str());
    return value;
  }

  Object::Map const* object_;
  std::string path_;
};

struct KnownNoise {
  bool is_none;
  std::string key;  // empty for fresh noise

  /** @brief Source of the noise in a ledger. */
  [[nodiscard]] char const* Source() const {
    return is_none ? "none" : key.empty() ? "os" : "fixed";
  }
  [[nodiscard]] bool IsPrivate() const { return !is_none && key.empty(); }
};
[[nodiscard]] inline KnownNoise ReadKnownNoise(JsonReader const& in) {
  return {in.Bool("noise_free"), in.Has("test_key") ? in.Text("test_key") : ""};
}

[[nodiscard]] inline Masking ReadMasking(JsonReader const& in) {
  Masking out;
  out.workers = static_cast<std::int32_t>(in.Int("workers", 0, Masking::kMaxWorkers));
  out.colluders = static_cast<std::int32_t>(in.Int("colluders", 0, std::max(out.workers - 1, 0)));
  Require(out.workers != 1, "masked sums require at least two workers.");
  return out;
}

/**
 * @brief Variance parameter of a Gaussian release; zero if and only if there is no noise.
 *
 * Below 2^10 standard deviations the accountant's slack would no longer cover the discreteness of
 * the noise; above 2^28 the sampler's 128-bit arithmetic would overflow.
 */
[[nodiscard]] inline std::uint64_t ReadSigma2(JsonReader const& in, bool noise_free) {
  return noise_free ? in.Int("sigma2", 0, 0)
                    : in.Int("sigma2", std::int64_t{1} << 20, std::int64_t{1} << 56);
}

/** @brief Scale of a Laplace release; zero if and only if there is no noise. */
[[nodiscard]] inline std::uint64_t ReadScale(JsonReader const& in, bool noise_free) {
  return noise_free ? in.Int("scale", 0, 0) : in.Int("scale", 1, std::int64_t{1} << 48);
}
}  // namespace xgboost::dp
