/**
 * Typed access to the fields of the JSON that xgb_dp sends. A field that is missing or outside its
 * range is an error: nothing here has a default, so nothing trains without a calibration.
 */
#pragma once

#include <algorithm>  // for max
#include <cmath>      // for isfinite
#include <cstdint>    // for int64_t, uint64_t
#include <cstdlib>    // for strtod
#include <limits>     // for numeric_limits
#include <string>     // for string
#include <utility>    // for move, pair
#include <vector>     // for vector

#include "plugin_cpp/release/masking.h"  // for Masking
#include "xgboost/json.h"     // for Json, get, IsA, Array, Object, Integer, String, Boolean
#include "xgboost/logging.h"  // for CHECK, LOG

namespace xgboost::dp {
class JsonReader {
 public:
  JsonReader(Json const& in, std::string path) : path_{std::move(path)} {
    CHECK(IsA<Object>(in)) << this->Where("") << "is not an object." << kMend;
    object_ = &get<Object const>(in);
  }

  [[nodiscard]] bool Has(std::string const& key) const {
    return object_->find(key) != object_->cend();
  }
  [[nodiscard]] Json const& At(std::string const& key) const {
    auto it = object_->find(key);
    CHECK(it != object_->cend()) << this->Where(key) << "is missing." << kMend;
    return it->second;
  }
  [[nodiscard]] std::int64_t Int(std::string const& key, std::int64_t lower,
                                 std::int64_t upper) const {
    auto const& v = this->At(key);
    CHECK(IsA<Integer>(v)) << this->Where(key) << "is not an integer." << kMend;
    auto value = static_cast<std::int64_t>(get<Integer const>(v));
    CHECK(value >= lower && value <= upper)
        << this->Where(key) << "is outside [" << lower << ", " << upper << "]." << kMend;
    return value;
  }
  [[nodiscard]] bool Bool(std::string const& key) const {
    auto const& v = this->At(key);
    CHECK(IsA<Boolean>(v)) << this->Where(key) << "is not a boolean." << kMend;
    return get<Boolean const>(v);
  }
  [[nodiscard]] std::string Text(std::string const& key) const {
    auto const& v = this->At(key);
    CHECK(IsA<String>(v)) << this->Where(key) << "is not a string." << kMend;
    return get<String const>(v);
  }
  /** @brief A real number, which travels as text: JSON numbers would be cut to 32 bits. */
  [[nodiscard]] double Real(std::string const& key,
                            double lower = std::numeric_limits<double>::lowest(),
                            double upper = std::numeric_limits<double>::max()) const {
    return this->Number(key, this->Text(key), lower, upper);
  }
  /** @brief A list of real numbers, each as text. */
  [[nodiscard]] std::vector<double> Reals(std::string const& key, double lower,
                                          double upper) const {
    auto const& json = this->At(key);
    CHECK(IsA<Array>(json)) << this->Where(key) << "is not a list." << kMend;
    std::vector<double> out;
    for (auto const& v : get<Array const>(json)) {
      CHECK(IsA<String>(v)) << this->Where(key) << "has an entry that is not a text." << kMend;
      out.push_back(this->Number(key, get<String const>(v), lower, upper));
    }
    return out;
  }
  /** @brief A finite number from its text. */
  [[nodiscard]] static double NumberOf(std::string const& where, std::string const& text) {
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    CHECK(end != text.c_str() && *end == '\0' && std::isfinite(value))
        << "The plan (`dp_plan`) is not valid: `" << where << "` is not a number." << kMend;
    return value;
  }
  template <typename T>
  [[nodiscard]] T Enum(std::string const& key,
                       std::vector<std::pair<char const*, T>> const& names) const {
    auto text = this->Text(key);
    for (auto const& [name, value] : names) {
      if (text == name) {
        return value;
      }
    }
    LOG(FATAL) << this->Where(key) << "has an unknown value." << kMend;
    return names.front().second;
  }

  static constexpr char kMend[] =
      " The plan of a private training is made by xgb_dp when `xgboost.train` is called with "
      "`dp_epsilon` and `dp_delta`; it is not written by hand.";

 private:
  [[nodiscard]] double Number(std::string const& key, std::string const& text, double lower,
                              double upper) const {
    auto value = NumberOf(path_ + key, text);
    CHECK(value >= lower && value <= upper)
        << this->Where(key) << "is not a number in [" << lower << ", " << upper << "]." << kMend;
    return value;
  }
  [[nodiscard]] std::string Where(std::string const& key) const {
    return "The plan (`dp_plan`) is not valid: `" + path_ + key + "` ";
  }

  Object::Map const* object_;
  std::string path_;
};

/** @brief What tests and comparisons ask for instead of noise that nobody knows. */
struct KnownNoise {
  bool is_none;
  std::string key;  // empty for fresh noise
};
/** @brief A release without noise, or with noise that somebody knows, must not be `private`. */
[[nodiscard]] inline KnownNoise ReadKnownNoise(JsonReader const& in) {
  KnownNoise out{in.Bool("noise_free"), in.Has("test_key") ? in.Text("test_key") : ""};
  CHECK(!(in.Bool("private") && (out.is_none || !out.key.empty())))
      << "The plan (`dp_plan`) is not valid: it says `private`, which fixed or absent noise "
         "contradicts."
      << JsonReader::kMend;
  return out;
}

/** @brief Who adds which part of the noise of masked sums. */
[[nodiscard]] inline Masking ReadMasking(JsonReader const& in) {
  Masking out;
  out.workers = static_cast<std::int32_t>(in.Int("workers", 0, Masking::kMaxWorkers));
  out.colluders = static_cast<std::int32_t>(in.Int("colluders", 0, std::max(out.workers - 1, 0)));
  CHECK_NE(out.workers, 1)
      << "The plan (`dp_plan`) is not valid: there is nothing to mask with one worker."
      << JsonReader::kMend;
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
