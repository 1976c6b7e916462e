/**
 * Exchanges between workers: they sum exact integers, rank 0 alone draws noise and selects, and all
 * go on with its released values. Without a cluster these are no-ops. Only for the release.
 *
 * Proof: docs/proofs/distributed.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t

#include "collective/allreduce.h"         // for Allreduce
#include "collective/broadcast.h"         // for Broadcast
#include "collective/communicator-inl.h"  // for IsDistributed, GetRank
#include "xgboost/collective/result.h"    // for SafeColl
#include "xgboost/context.h"              // for Context
#include "xgboost/linalg.h"               // for MakeVec

namespace xgboost::dp {
/** @brief Exact sums over all workers, in place and in the clear. */
inline void SumOverWorkers(Context const* ctx, std::int64_t* values, std::size_t size) {
  if (collective::IsDistributed() && size > 0) {
    SafeColl(collective::Allreduce(ctx, linalg::MakeVec(values, size), collective::Op::kSum));
  }
}

/** @brief The vector that `fn` returns on rank 0, on every worker. */
template <typename Fn>
auto FromRankZero(Context const* ctx, Fn&& fn) {
  decltype(fn()) out;
  if (!collective::IsDistributed() || collective::GetRank() == 0) {
    out = fn();
  }
  if (!collective::IsDistributed()) {
    return out;
  }
  std::int64_t size = out.size();
  SafeColl(collective::Broadcast(ctx, linalg::MakeVec(&size, 1), 0));
  out.resize(size);
  if (size > 0) {
    SafeColl(collective::Broadcast(ctx, linalg::MakeVec(out.data(), out.size()), 0));
  }
  return out;
}
}  // namespace xgboost::dp
