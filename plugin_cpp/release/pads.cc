#include "plugin_cpp/release/pads.h"

#include <algorithm>  // for copy_n
#include <cstddef>    // for size_t
#include <utility>    // for move

#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
namespace {
// Each key serves one stream of one training.
constexpr std::uint32_t kPadStream = 0;

struct Kept {
  std::string id;
  std::shared_ptr<PairPads> pads;
};

Kept& OfThread() {
  static thread_local Kept kept;
  return kept;
}
}  // namespace

PairPads::PairPads(std::int32_t rank, std::int32_t world, std::uint8_t const* seeds) : rank_{rank} {
  CHECK(world >= 2 && rank >= 0 && rank < world) << "Pads are shared by at least two workers.";
  sources_.resize(world);
  for (std::int32_t peer = 0; peer < world; ++peer) {
    if (peer == rank) {
      continue;
    }
    ChaChaKey key;
    std::copy_n(seeds + key.size() * static_cast<std::size_t>(peer), key.size(), key.begin());
    sources_[peer] = std::make_unique<ChaCha20Source>(key, kPadStream);
    SecureWipe(key.data(), key.size());
  }
  WipeStack();
}

void PairPads::Mask(std::vector<std::uint64_t>* values) {
  for (std::int32_t peer = 0; peer < this->World(); ++peer) {
    auto* source = sources_[peer].get();
    if (!source) {
      continue;
    }
    // Unsigned: arithmetic modulo 2^64.
    if (rank_ < peer) {
      for (auto& v : *values) {
        v += source->Next64();
      }
    } else {
      for (auto& v : *values) {
        v -= source->Next64();
      }
    }
  }
}

void KeepPads(std::string const& id, std::shared_ptr<PairPads> pads) {
  OfThread() = {id, std::move(pads)};
}

void DropPads() { OfThread() = {}; }

std::shared_ptr<PairPads> FindPads(std::string const& id, bool take) {
  auto& kept = OfThread();
  CHECK(kept.pads && kept.id == id)
      << "The workers have agreed on no keys for this masked training: call `xgboost.train` with "
         "`dp_secure_sum` on every worker, in the thread that has joined the communicator.";
  auto pads = kept.pads;
  if (take) {
    DropPads();
  }
  return pads;
}
}  // namespace xgboost::dp
