/**
 * Distributed training: workers sum exact integers, rank 0 alone draws noise and decides, and all
 * follow its decisions. Without a cluster these are no-ops. In a masked training exact sums stay
 * with their worker, and noisy ones are made by MaskedSums.
 *
 * Proof: docs/proofs/distributed.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t
#include <vector>   // for vector

#include "collective/allreduce.h"          // for Allreduce
#include "collective/broadcast.h"          // for Broadcast
#include "collective/communicator-inl.h"   // for IsDistributed, GetRank
#include "plugin_cpp/release/masking.h"     // for Masking
#include "xgboost/collective/result.h"     // for SafeColl
#include "xgboost/context.h"               // for Context
#include "xgboost/linalg.h"                // for MakeVec

namespace xgboost::dp {
/** @brief Exact sums over all workers, in the clear; in a masked training this worker's alone. */
template <typename T>
void SumOverWorkers(Context const* ctx, Masking const& masking, T* values, std::size_t size) {
  if (collective::IsDistributed() && !masking.IsOn() && size > 0) {
    SafeColl(collective::Allreduce(ctx, linalg::MakeVec(values, size), collective::Op::kSum));
  }
}

template <typename T>
void SumOverWorkers(Context const* ctx, Masking const& masking, std::vector<T>* values) {
  SumOverWorkers(ctx, masking, values->data(), values->size());
}

/** @brief The vector that `fn` returns on rank 0, on every worker. */
template <typename Fn>
auto FromRankZero(Context const* ctx, Fn&& fn) {
  decltype(fn()) out;
  if (!collective::IsDistributed()) {
    out = fn();
    return out;
  }
  if (collective::GetRank() == 0) {
    out = fn();
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
