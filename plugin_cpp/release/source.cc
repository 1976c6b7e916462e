#include "plugin_cpp/release/source.h"

#include <cstddef>  // for size_t

#include "collective/communicator-inl.h"  // for GetRank
#include "plugin_cpp/release/workers.h"   // for TakeFromRankZero
#include "xgboost/logging.h"              // for CHECK

namespace xgboost::dp {
namespace {
ChaChaKey MakeKey(std::string const& test_key) {
  if (test_key.empty()) {
    return SystemKey();
  }
  ChaChaKey key;
  CHECK_EQ(test_key.size(), 2 * key.size()) << "A test key must have 64 hexadecimal digits.";
  CHECK_EQ(test_key.find_first_not_of("0123456789abcdef"), std::string::npos)
      << "A test key must have 64 lower-case hexadecimal digits.";
  for (std::size_t i = 0; i < key.size(); ++i) {
    key[i] = static_cast<std::uint8_t>(std::stoi(test_key.substr(2 * i, 2), nullptr, 16));
  }
  return key;
}

std::unique_ptr<RandomSource> SourceFromKey(ChaChaKey* key, std::uint32_t stream_id) {
  auto source = std::make_unique<ChaCha20Source>(*key, stream_id);
  SecureWipe(key->data(), key->size());
  WipeStack();
  return source;
}
}  // namespace

std::unique_ptr<RandomSource> MakeRandomSource(std::string const& test_key,
                                               std::uint32_t stream_id) {
  auto key = MakeKey(test_key);
  return SourceFromKey(&key, stream_id);
}

std::unique_ptr<RandomSource> MakeShareSource(std::string const& test_key,
                                              std::uint32_t stream_id) {
  constexpr std::uint32_t kStreams = 2;  // kLabelSumsStream and kTrainingStream
  CHECK_LT(stream_id, kStreams);
  auto rank = static_cast<std::uint32_t>(collective::GetRank());
  return MakeRandomSource(test_key, kShareStream + kStreams * rank + stream_id);
}

std::unique_ptr<RandomSource> MakeSampleSource(std::string const& test_key) {
  return MakeRandomSource(test_key, kSamplingStream + collective::GetRank());
}

std::unique_ptr<RandomSource> MakeSharedSource(Context const* ctx, std::string const& test_key,
                                               std::uint32_t stream_id) {
  auto key = MakeKey(test_key);
  TakeFromRankZero(ctx, key.data(), key.size());
  return SourceFromKey(&key, stream_id);
}

std::unique_ptr<RandomSource> MakePublicSource(ChaChaKey const& bytes, std::uint32_t stream_id) {
  return std::make_unique<ChaCha20Source>(bytes, stream_id);
}
}  // namespace xgboost::dp
