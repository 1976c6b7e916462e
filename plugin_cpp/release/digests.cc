#include "plugin_cpp/release/digests.h"

#include <cstddef>  // for size_t
#include <cstdint>  // for uint64_t

#include "plugin_cpp/release/sha256.h"  // for Sha256, ToHex
#include "xgboost/json.h"               // for Json, get, Object, String
#include "xgboost/logging.h"            // for CHECK

namespace xgboost::dp {
namespace {
/** @brief Append numbers as doubles, which are exact for 32-bit floats and for indices. */
template <typename T>
bool AppendNumbers(Json const& value, Sha256* hash) {
  if (!IsA<T>(value)) {
    return false;
  }
  auto const& numbers = get<T const>(value);
  hash->Append(static_cast<std::uint64_t>(numbers.size()));
  for (auto number : numbers) {
    auto real = static_cast<double>(number);
    hash->Append(&real, sizeof(real));
  }
  return true;
}

void Append(Json const& value, Sha256* hash) {
  if (IsA<String>(value)) {
    hash->Append(get<String const>(value));
  } else if (IsA<Object>(value)) {
    for (auto const& [name, inner] : get<Object const>(value)) {
      hash->Append(name + "=");
      Append(inner, hash);
    }
  } else {
    CHECK(AppendNumbers<F32Array>(value, hash) || AppendNumbers<I32Array>(value, hash) ||
          AppendNumbers<I64Array>(value, hash) || AppendNumbers<U8Array>(value, hash))
        << "A field of a tree has an unknown type.";
  }
}
}  // namespace

std::string TreeDigest(RegTree const& tree) {
  constexpr std::size_t kBytes = 16;
  Json saved{Object{}};
  tree.SaveModel(&saved);
  get<Object>(saved).erase("id");  // its position in a model
  Sha256 hash;
  Append(saved, &hash);
  return ToHex(hash.Finish().data(), kBytes);
}

std::string PlanDigest(std::string const& plan_text) {
  auto digest = Sha256{}.Append(plan_text).Finish();
  return ToHex(digest.data(), digest.size());
}
}  // namespace xgboost::dp
