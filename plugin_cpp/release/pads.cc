#include "plugin_cpp/release/pads.h"

#include <algorithm>  // for copy_n
#include <cstddef>    // for size_t

#include "plugin_cpp/random/chacha20.h"  // for ChaCha20Source, SecureWipe, WipeStack
#include "xgboost/logging.h"             // for CHECK, CHECK_EQ

namespace xgboost::dp {
namespace {
// Each key of pads serves one stream of one sum.
constexpr std::uint32_t kPadStream = 0;
constexpr std::size_t kKind = 8;
constexpr char kPads[] = "dp-pads.";

// All parts have a fixed length, so that no two lists of parts are one text.
std::string Text(std::string const& kind, std::int32_t sender, Digest const& context,
                 Digest const& said) {
  CHECK_EQ(kind.size(), kKind);
  auto text = kind;
  for (int shift = 0; shift < 32; shift += 8) {
    text.push_back(static_cast<char>(static_cast<std::uint32_t>(sender) >> shift));
  }
  text.append(context.cbegin(), context.cend());
  return text.append(said.cbegin(), said.cend());
}
}  // namespace

PairKeys::PairKeys(std::int32_t rank, std::int32_t world, std::uint8_t const* seeds) : rank_{rank} {
  CHECK(world >= 2 && rank >= 0 && rank < world) << "Pads are shared by at least two workers.";
  keys_.resize(world, Digest{});
  for (std::int32_t peer = 0; peer < world; ++peer) {
    if (peer != rank) {
      auto& key = keys_[peer];
      std::copy_n(seeds + key.size() * static_cast<std::size_t>(peer), key.size(), key.begin());
    }
  }
}

PairKeys::~PairKeys() {
  for (auto& key : keys_) {
    SecureWipe(key.data(), key.size());
  }
}

void PairKeys::Mask(Digest const& context, std::vector<std::uint64_t>* values) const {
  for (std::int32_t peer = 0; peer < this->World(); ++peer) {
    if (peer == rank_) {
      continue;
    }
    ChaChaKey key = Hmac(keys_[peer], Text(kPads, 0, context, Digest{}));
    ChaCha20Source source{key, kPadStream};
    SecureWipe(key.data(), key.size());
    // Unsigned: arithmetic modulo 2^64.
    if (rank_ < peer) {
      for (auto& v : *values) {
        v += source.Next64();
      }
    } else {
      for (auto& v : *values) {
        v -= source.Next64();
      }
    }
  }
  WipeStack();
}

Tag PairKeys::TagOf(std::int32_t peer, std::int32_t sender, std::string const& kind,
                    Digest const& context, Digest const& said) const {
  CHECK(kind != kPads && peer != rank_);
  auto digest = Hmac(keys_.at(peer), Text(kind, sender, context, said));
  Tag tag{};
  for (std::size_t i = 0; i < 8 * tag.size(); ++i) {
    tag[i / 8] |= static_cast<std::uint64_t>(digest[i]) << (8 * (i % 8));
  }
  return tag;
}
}  // namespace xgboost::dp
