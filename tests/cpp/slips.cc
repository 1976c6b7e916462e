/**
 * Slips that must not compile: exact sums where noisy ones belong, and one worker's where those of
 * all belong.
 *
 * Proof: docs/proofs/distributed.md
 */
#include <cstdint>      // for int64_t
#include <type_traits>  // for is_constructible_v, is_convertible_v, is_invocable_v
#include <vector>       // for vector

#include "plugin_cpp/mechanisms/leaves/leaf_values.h"  // for FinishTree
#include "plugin_cpp/mechanisms/leaves/leaves.h"       // for LeafSums
#include "plugin_cpp/mechanisms/splits/score.h"        // for L1Score
#include "plugin_cpp/release/sums.h"                   // for LocalSum, GlobalSum, NoisySum

namespace xgboost::dp {
namespace {
template <typename From, typename To>
constexpr bool kBecomes = std::is_convertible_v<From, To> || std::is_constructible_v<To, From> ||
                          std::is_assignable_v<To&, From>;

// Only the release makes noisy numbers.
static_assert(!std::is_constructible_v<NoisyInt, std::int64_t>);
static_assert(!kBecomes<LocalInt, NoisyInt> && !kBecomes<GlobalInt, NoisyInt>);
static_assert(!kBecomes<LocalSum, NoisySum> && !kBecomes<GlobalSum, NoisySum>);
static_assert(!kBecomes<LocalSum, GlobalSum> && !kBecomes<LocalInt, GlobalInt>);
static_assert(!kBecomes<std::vector<LocalSum>, std::vector<GlobalSum>>);
static_assert(!kBecomes<std::vector<GlobalSum>, Released<NoisySum>>);
static_assert(!kBecomes<std::vector<GlobalInt>, std::vector<NoisyInt>>);

// Shrinkage, priors, gains and leaf values see the noisy ones of a node alone.
template <typename Sum>
constexpr bool kIsRead = std::is_constructible_v<NodeSum, Sum, double, RowBound, double> ||
                         std::is_constructible_v<NodeSum, Sum, double, RowBound>;
static_assert(kIsRead<NoisySum> && kIsRead<NoisyInt>);
static_assert(!kIsRead<LocalSum> && !kIsRead<GlobalSum> && !kIsRead<GlobalInt>);
static_assert(!kIsRead<std::int64_t> && !kBecomes<GlobalSum, NodeSum>);

template <typename Sums>
constexpr bool kFinishes =
    std::is_invocable_v<decltype(LeafWeights), Plan const&, bool, Sums, LeafShrinkage*> &&
    std::is_invocable_v<decltype(FinishTree), std::vector<double> const&, Plan const&, TreeIndex,
                        std::vector<bst_node_t> const&, Sums, RegTree*>;
static_assert(kFinishes<std::vector<NodeSum>>);
template <typename Sums>
constexpr bool kIsFinished =
    std::is_invocable_v<decltype(LeafWeights), Plan const&, bool, Sums, LeafShrinkage*> ||
    std::is_invocable_v<decltype(FinishTree), std::vector<double> const&, Plan const&, TreeIndex,
                        std::vector<bst_node_t> const&, Sums, RegTree*>;
static_assert(!kIsFinished<std::vector<GlobalSum>> && !kIsFinished<LeafSums>);

// A selection takes the sums of all workers.
static_assert(std::is_invocable_v<L1Score, GlobalSum> && !std::is_invocable_v<L1Score, LocalSum>);
}  // namespace
}  // namespace xgboost::dp
