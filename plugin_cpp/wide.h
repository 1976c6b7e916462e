/**
 * Loops for which the processor may have wider instructions than those that all of its kind have.
 *
 * Results are the same: every operation is rounded on its own (-ffp-contract=off), in an order that
 * the width does not change.
 *
 * Proof: docs/proofs/integer-grid.md
 */
#pragma once

#include <cstddef>  // for __GLIBC__: other C libraries do not choose functions when they load them

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define XGB_DP_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define XGB_DP_WIDE
#endif  // defined(__x86_64__)
