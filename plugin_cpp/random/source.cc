#include "plugin_cpp/random/source.h"

#include <cstddef>  // for size_t
#include <cstdint>  // for uint8_t
#include <memory>   // for make_unique
#include <string>   // for string, stoi

#include "collective/communicator-inl.h"  // for GetRank
#include "plugin_cpp/random/entropy.h"     // for SystemKey
#include "xgboost/logging.h"              // for CHECK

namespace xgboost::dp {
std::unique_ptr<RandomSource> MakeRandomSource(std::string const& test_key,
                                               std::uint32_t stream_id) {
  ChaChaKey key;
  if (test_key.empty()) {
    key = SystemKey();
  } else {
    CHECK_EQ(test_key.size(), 2 * key.size()) << "A test key has 64 hexadecimal digits.";
    CHECK_EQ(test_key.find_first_not_of("0123456789abcdef"), std::string::npos)
        << "A test key has 64 lower-case hexadecimal digits.";
    for (std::size_t i = 0; i < key.size(); ++i) {
      key[i] = static_cast<std::uint8_t>(std::stoi(test_key.substr(2 * i, 2), nullptr, 16));
    }
  }
  auto source = std::make_unique<ChaCha20Source>(key, stream_id);
  SecureWipe(key.data(), key.size());
  WipeStack();
  return source;
}

std::unique_ptr<RandomSource> MakeShareSource(std::string const& test_key,
                                              std::uint32_t stream_id) {
  constexpr std::uint32_t kStreams = 2;  // of the intercept and of a training
  CHECK_LT(stream_id, kStreams);
  auto rank = static_cast<std::uint32_t>(collective::GetRank());
  return MakeRandomSource(test_key, kShareStream + kStreams * rank + stream_id);
}
}  // namespace xgboost::dp
