#include "plugin_cpp/release/masked_sums.h"

#include <cstddef>  // for size_t
#include <utility>  // for move

#include "collective/allreduce.h"         // for Allreduce
#include "collective/communicator-inl.h"  // for GetRank, GetWorldSize
#include "xgboost/collective/result.h"    // for Result
#include "xgboost/linalg.h"               // for MakeVec
#include "xgboost/logging.h"              // for CHECK

namespace xgboost::dp {
void MaskedSums::Open(std::shared_ptr<PairPads> pads) {
  CHECK(masking_.workers == collective::GetWorldSize() && pads->World() == masking_.workers &&
        pads->Rank() == collective::GetRank())
      << "The noise of this masked training was divided among " << masking_.workers
      << " workers, which are not those that train.";
  pads_ = std::move(pads);
}

std::vector<std::int64_t> MaskedSums::Release(std::vector<std::int64_t> local,
                                              std::uint64_t sigma2) {
  CHECK(pads_) << "The pads of this masked training are used up: start a new one.";
  CHECK(rng_ || sigma2 == 0);
  std::vector<std::uint64_t> words(local.size() + 1);  // the last: zero, and zero it must come out
  auto share = rng_ ? masking_.ShareOf(sigma2) : 0;
  for (std::size_t i = 0; i < local.size(); ++i) {
    words[i] = static_cast<std::uint64_t>(local[i]);
    if (rng_) {
      words[i] += static_cast<std::uint64_t>(DiscreteGaussian(rng_, share));
    }
  }
  SecureWipe(local.data(), local.size() * sizeof(local.front()));
  // From here until the sum has come out right there are no pads for another one.
  auto pads = std::move(pads_);
  pads->Mask(&words);
  WipeStack();
  auto result = collective::Allreduce(ctx_, linalg::MakeVec(words.data(), words.size()),
                                      collective::Op::kSum);
  CHECK(result.OK())
      << "A worker has dropped out of a masked sum, or cannot be reached. Nothing of this sum can be "
         "read. The training has ended; what was released before it is in the ledger. Start a new "
         "training with the workers that are left. "
      << result.Report();
  CHECK_EQ(words.back(), 0)
      << "The pads of a masked sum do not cancel: the workers are out of step. The training has "
         "ended, and nothing of this sum can be read.";
  pads_ = std::move(pads);
  for (std::size_t i = 0; i < local.size(); ++i) {
    local[i] = static_cast<std::int64_t>(words[i]);
  }
  return local;
}
}  // namespace xgboost::dp
