/**
 * Typed access to the fields of the JSON that xgb_dp sends. A field that is missing or outside its
 * range is an error: nothing here has a default, so nothing trains without a calibration.
 *
 * A part of a plan derives from its reader: the line that declares a field reads and checks it. It
 * reads while it is made and never afterwards, when the text may be gone.
 */
#pragma once

#include <algorithm>  // for find, find_if, max
#include <cmath>      // for isfinite
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t, uint64_t
#include <cstdlib>    // for strtod
#include <limits>     // for numeric_limits
#include <sstream>    // for ostringstream
#include <string>     // for string, to_string
#include <utility>    // for move, pair
#include <vector>     // for vector

#include "plugin_cpp/release/masking.h"  // for Masking
#include "xgboost/json.h"     // for Json, get, IsA, Array, Object, Integer, String, Boolean
#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
inline void Require(bool holds, std::string const& what) {
  CHECK(holds)
      << "The plan (`dp_plan`) is not valid: " << what
      << " The plan of a private training is made by xgb_dp when `xgboost.train` is called "
         "with `dp_epsilon` and `dp_delta`; it is not written by hand.";
}

class JsonReader {
 private:  // first: what is deduced stands before its use
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
    return IntsOf<T>(this->At(key), key, lower, upper);
  }
  /** @brief The integers of a list, which is a field or part of one. */
  template <typename T>
  [[nodiscard]] static std::vector<T> IntsOf(Json const& list, std::string const& key,
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
  /** @brief A real number, which travels as text: JSON numbers would be cut to 32 bits. */
  [[nodiscard]] double Real(std::string const& key,
                            double lower = std::numeric_limits<double>::lowest(),
                            double upper = std::numeric_limits<double>::max()) const {
    return this->Number(key, this->Text(key), lower, upper);
  }
  [[nodiscard]] std::vector<double> Reals(std::string const& key, double lower,
                                          double upper) const {
    std::vector<double> out;
    for (auto const& v : this->List(key)) {
      this->Check(IsA<String>(v), key, "has an entry that is not a text.");
      out.push_back(this->Number(key, get<String const>(v), lower, upper));
    }
    return out;
  }
  [[nodiscard]] static double NumberOf(std::string const& where, std::string const& text) {
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    Require(end != text.c_str() && *end == '\0' && std::isfinite(value),
            "`" + where + "` is not a number.");
    return value;
  }
  template <typename T>
  [[nodiscard]] T Enum(std::string const& key,
                       std::vector<std::pair<char const*, T>> const& names) const {
    auto text = this->Text(key);
    auto it = std::find_if(names.cbegin(), names.cend(),
                           [&](auto const& known) { return text == known.first; });
    this->Check(it != names.cend(), key, "has an unknown value.");
    return it->second;
  }
  /** @brief The same where names are listed in the order of the values. */
  template <typename T, std::size_t kN>
  [[nodiscard]] T Enum(std::string const& key, char const* const (&names)[kN]) const {
    auto it = std::find(names, names + kN, this->Text(key));
    this->Check(it != names + kN, key, "has an unknown value.");
    return static_cast<T>(it - names);
  }

 private:
  [[nodiscard]] double Number(std::string const& key, std::string const& text, double lower,
                              double upper) const {
    auto value = NumberOf(path_ + key, text);
    std::ostringstream ends;
    ends << "is not a number in [" << lower << ", " << upper << "].";
    this->Check(value >= lower && value <= upper, key, ends.str());
    return value;
  }

  Object::Map const* object_;
  std::string path_;
};

/** @brief What tests and comparisons ask for instead of noise that nobody knows. */
struct KnownNoise {
  bool is_none;
  std::string key;  // empty for fresh noise

  /** @brief Where the noise comes from, as ledgers name it. */
  [[nodiscard]] char const* Source() const {
    return is_none ? "none" : key.empty() ? "os" : "fixed";
  }
  /** @brief Only noise that nobody knows gives privacy. */
  [[nodiscard]] bool IsPrivate() const { return !is_none && key.empty(); }
};
[[nodiscard]] inline KnownNoise ReadKnownNoise(JsonReader const& in) {
  return {in.Bool("noise_free"), in.Has("test_key") ? in.Text("test_key") : ""};
}

/** @brief Who adds which part of the noise of masked sums. */
[[nodiscard]] inline Masking ReadMasking(JsonReader const& in) {
  Masking out;
  out.workers = static_cast<std::int32_t>(in.Int("workers", 0, Masking::kMaxWorkers));
  out.colluders = static_cast<std::int32_t>(in.Int("colluders", 0, std::max(out.workers - 1, 0)));
  Require(out.workers != 1, "there is nothing to mask with one worker.");
  return out;
}

/**
 * @brief Variance of a Gaussian release, zero exactly without noise.
 *
 * Below 2^10 standard deviations the accountant's slack would no longer cover the discreteness of
 * the noise; above 2^28 the sampler's 128-bit arithmetic would overflow.
 */
[[nodiscard]] inline std::uint64_t ReadSigma2(JsonReader const& in, bool noise_free) {
  return noise_free ? in.Int("sigma2", 0, 0)
                    : in.Int("sigma2", std::int64_t{1} << 20, std::int64_t{1} << 56);
}

/** @brief Scale of a Laplace release, zero exactly without noise. */
[[nodiscard]] inline std::uint64_t ReadScale(JsonReader const& in, bool noise_free) {
  return noise_free ? in.Int("scale", 0, 0) : in.Int("scale", 1, std::int64_t{1} << 48);
}
}  // namespace xgboost::dp
