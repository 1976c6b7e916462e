/**
 * Communication between workers: they sum exact integers, rank 0 draws noise and selects, and all
 * use the values that it releases. Without a cluster these functions do nothing. Only for Release.
 *
 * Proof: docs/proofs/distributed.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t
#include <vector>   // for vector

#include "collective/allreduce.h"         // for Allreduce
#include "collective/broadcast.h"         // for Broadcast
#include "collective/comm_group.h"        // for GlobalCommGroup
#include "collective/communicator-inl.h"  // for IsDistributed
#include "common/type.h"                  // for EraseType
#include "xgboost/collective/result.h"    // for SafeColl
#include "xgboost/context.h"              // for Context, DeviceOrd
#include "xgboost/linalg.h"               // for MakeVec
#include "xgboost/span.h"                 // for Span

namespace xgboost::dp {
/**
 * @brief Sum over all workers, in place, exactly and without masks.
 *
 * Up to 1,024 numbers per worker are reduced to rank 0 in a tree, and broadcast. A ring sends fewer
 * bytes, but takes 2 W - 1 steps among W workers, each with the latency of a message.
 */
inline void SumOverWorkers(Context const* ctx, std::int64_t* values, std::size_t size) {
  if (!collective::IsDistributed() || size == 0) {
    return;
  }
  auto all = linalg::MakeVec(values, size);
  auto const& comm = collective::GlobalCommGroup()->Ctx(ctx, DeviceOrd::CPU());
  auto rank = comm.Rank(), world = comm.World();
  if (size > std::size_t{1024} * world) {
    SafeColl(collective::Allreduce(ctx, all, collective::Op::kSum));
    return;
  }
  std::vector<std::int64_t> theirs(size);
  for (std::int32_t step = 1; step < world; step *= 2) {
    if (rank % (2 * step) != 0) {
      SafeColl(comm.Chan(rank - step)->SendAll(common::EraseType(all.Values())));
      SafeColl(comm.Block());
      break;
    }
    if (rank + step < world) {
      SafeColl(comm.Chan(rank + step)->RecvAll(common::EraseType(common::Span{theirs})));
      SafeColl(comm.Block());
      for (std::size_t i = 0; i < size; ++i) {
        values[i] += theirs[i];
      }
    }
  }
  SafeColl(collective::Broadcast(ctx, all, 0));
}

/** @brief Broadcast the numbers of rank 0. */
template <typename T>
void TakeFromRankZero(Context const* ctx, T* values, std::size_t size) {
  if (size > 0) {
    SafeColl(collective::Broadcast(ctx, linalg::MakeVec(values, size), 0));
  }
}
}  // namespace xgboost::dp
