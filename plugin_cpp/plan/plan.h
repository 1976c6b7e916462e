/**
 * The plan of one private training: everything that xgb_dp has calibrated, declared or chosen.
 *
 * It travels as the single parameter `dp_plan` (JSON). Integers are JSON integers, real numbers
 * are JSON strings (XGBoost's JSON numbers are 32-bit floats). A plan that lacks a field is
 * refused: there are no permissive defaults, so nothing trains without a calibration.
 */
#pragma once

#include <algorithm>  // for count_if
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t, uint64_t, int32_t
#include <memory>     // for shared_ptr
#include <string>     // for string
#include <vector>     // for vector

#include "plugin_cpp/loss/loss.h"        // for Loss
#include "plugin_cpp/plan/row_bound.h"   // for RowBound
#include "plugin_cpp/release/ledger.h"   // for kEpsBits, kSampleBits
#include "plugin_cpp/release/masking.h"  // for Masking
#include "xgboost/base.h"                // for bst_feature_t

namespace xgboost::dp {
/**
 * @brief Largest range, exclusive: with the bits of eps0 it must fit the denominator of the
 *        exponential mechanism. A denominator that wraps around would void the guarantee.
 */
inline constexpr std::uint64_t kMaxScoreRange = std::uint64_t{1} << (63 - kEpsBits);

// What plans and ledgers call the values of an enumeration, in their order, follows it.

/** @brief Which tree shape a round grows. */
enum class TreeShape { kAlternate, kPerNode, kOblivious };
inline constexpr char const* kShapes[] = {"alternate", "per_node", "oblivious"};
/** @brief How splits are chosen. */
enum class SplitChoice { kExponential, kRandom, kHistogram, kPartial, kPublic };
inline constexpr char const* kSplits[] = {"exponential", "random", "histogram", "partial",
                                          "public"};
/** @brief Whether the trees of a round, one for each class, share their splits. */
enum class ClassTrees { kPerClass, kJoint };
inline constexpr char const* kClassTrees[] = {"per_class", "joint"};
/** @brief Utility of a split candidate. */
enum class Score { kL1, kNewton, kGain };
inline constexpr char const* kScores[] = {"l1", "newton", "gain"};

/** @brief Noise of leaves: on their sums, or Laplace noise on the leaf value itself. */
enum class LeafNoise { kGaussian, kLaplace, kOutput };
inline constexpr char const* kLeafNoises[] = {"gaussian", "laplace", "output"};
/** @brief What private candidates are read from. */
enum class CandidateKind { kQuantileTree, kHistogram, kAdaptive };
inline constexpr char const* kCandidateKinds[] = {"quantile_tree", "histogram", "adaptive"};

/** @brief Where the splits of one feature may be. All but `kPrivate` are public. */
struct FeaturePlan {
  enum class Kind { kPrivate, kCuts, kCategorical } kind{Kind::kPrivate};
  static constexpr char const* kKinds[] = {"private", "cuts", "categorical"};
  std::vector<float> cuts;       // kCuts: sorted, finite
  std::vector<float> grid;       // kPrivate: public edges of a noisy histogram, or ends of the cuts
  std::int32_t n_categories{0};  // kCategorical: codes 0 .. n - 1
};

/** @brief A node of a tree that was grown on public rows: a split by an offer, or a leaf. */
struct PublicNode {
  std::int32_t feature{-1};  // -1 for a leaf
  std::int32_t offer{0};     // see Offers
  std::int32_t right{-1};    // position of the right child; the left one is the next node

  [[nodiscard]] bool IsLeaf() const { return feature < 0; }
};
/** @brief The nodes of a tree, each before those below it. */
using PublicTree = std::vector<PublicNode>;

struct CandidatePlan {
  CandidateKind kind{CandidateKind::kQuantileTree};
  std::int32_t rounds{0};  // rounds that release candidates, from the first one on
  bool hessian{false};     // rows weigh their bounded Hessian instead of one
  bool laplace{false};
  std::int32_t levels{0};   // released levels of the quantile tree, the root included
  std::int32_t shift{0};    // counts are multiplied by 2^shift before noise
  std::uint64_t sigma2{0};  // variance of Gaussian noise on these integers
  std::uint64_t scale{0};   // scale of Laplace noise on them
  std::int32_t max_bin{0};  // target number of bins of a feature
};

struct LeafPlan {
  LeafNoise noise{LeafNoise::kGaussian};
  std::uint64_t sigma2{0};     // variance of Gaussian noise on grid integers, for G and for H
  std::uint64_t scale{0};      // scale of Laplace noise
  bool geometric_clip{false};  // kOutput: values are clipped to (1 - eta)^t, where C = 1
  double eta{0};
  double eta_start{1.0};  // learning rate of the first round over eta, that of the last
  double lambda{0};
  double alpha{0};
  double max_delta_step{0};    // 0: no clip
  double min_child_weight{0};  // floor of the noisy Hessian; kOutput: of the exact count
  bool spread{false};          // persons count more where their rows are in several leaves
  bool shrinkage{false};
  bool strata{false};  // shrink effects of a tree's selections, where it is complete
  double prior_max{0};
};

/** @brief Release of the mean residual of a regression after its last tree, and again. */
struct CorrectionPlan {
  static constexpr std::int32_t kTimes = 2;

  bool is_on{false};
  std::uint64_t sigma2{0};  // variance of the noise on each sum, in units of its own
};

/** @brief Which tree of a training it is, by which its margins have a unit. */
struct TreeOfRound {
  std::int32_t round;
  std::size_t class_idx;
};

struct Plan {
  bool is_private{false};
  bool noise_free{false};
  std::string test_key;  // fixed noise, tests only: the model is marked non-private
  std::string id;        // names this calibration in the ledger
  std::string objective;
  std::shared_ptr<Loss const> loss;  // null where the gradients are XGBoost's
  std::int32_t n_features{0};
  std::int32_t num_class{0};  // trees a round of each parallel tree
  std::int32_t rounds{0};
  std::int32_t depth{0};
  std::int32_t parallel_trees{0};  // trees of one class in one round, on the same gradients
  std::int32_t features_per_tree{0};
  bool cyclic_features{false};                // take them in turn; else at random
  std::vector<std::int64_t> feature_weights;  // public chances of the features; empty: even
  std::vector<bst_feature_t> offered;         // all that trees use, ascending; empty: as drawn
  TreeShape shape{TreeShape::kAlternate};
  SplitChoice split{SplitChoice::kExponential};
  Score score{Score::kL1};
  ClassTrees class_trees{ClassTrees::kPerClass};
  double score_clip{0};              // largest leaf weight of the Newton score
  std::int32_t split_levels{0};      // levels that one selection fills
  std::int32_t split_candidates{0};  // partitions of a feature that are drawn for one selection
  double split_prior{0};             // weight of earlier released gains in the choice of features
  bool no_split{false};
  double gamma{0};                    // public bonus of "no split", in utility units where C = 1
  std::uint64_t histogram_sigma2{0};  // variance of the noise on each sum of a noisy histogram
  std::uint64_t eps_num{0};           // eps0 of one selection is eps_num / 2^kEpsBits
  std::uint64_t score_range{0};       // of the utility under add/remove, in its units
  std::int64_t sampling_num{0};       // a round reads each row with probability sampling_num / 2^32
  std::int32_t ensemble{0};      // rounds of one ensemble, which read disjoint parts of the rows
  bool ensemble_halving{false};  // each takes half of the rows that are left, not its share
  bool base_margin{false};       // whether rows bring their own margins
  Masking masking;
  RowBound row_bound;
  CandidatePlan candidates;
  LeafPlan leaf;
  CorrectionPlan correction;
  std::vector<FeaturePlan> features;
  std::vector<std::int32_t> monotone;                    // -1, 0 or 1 for each feature
  std::vector<PublicTree> structures;                    // kPublic: of each class of each round
  std::vector<std::vector<bst_feature_t>> interactions;  // sets that may share a path; empty: all

  static constexpr std::int64_t kMaxFeatureWeight = std::int64_t{1} << 31;
  static constexpr std::int32_t kMaxEnsemble = 1 << 16;
  static constexpr std::int64_t kSampleAll = std::int64_t{1} << kSampleBits;

  /** @brief Selections on the way from the root to a leaf. */
  [[nodiscard]] std::int32_t SelectionsOfTree() const {
    return (depth + split_levels - 1) / split_levels;
  }
  /** @brief Whether one selection serves the trees of all classes. */
  [[nodiscard]] bool SharesSplits() const { return class_trees == ClassTrees::kJoint; }
  /** @brief The class for which the splits of the tree of a class are chosen. */
  [[nodiscard]] std::size_t SplitsOf(std::size_t class_idx) const {
    return this->SharesSplits() ? 0 : class_idx;
  }
  /**
   * @brief Learning rate of a tree, which rises by equal steps from round to round; trees of one
   *        round on the same gradients are averaged.
   */
  [[nodiscard]] double Step(std::int32_t round) const {
    double to_go = rounds > 1 ? static_cast<double>(rounds - 1 - round) / (rounds - 1) : 0.0;
    return leaf.eta * (1.0 - (1.0 - leaf.eta_start) * to_go) / parallel_trees;
  }
  [[nodiscard]] bool IsSampled() const { return sampling_num < kSampleAll; }
  /** @brief Whether a round reads some of the rows only. */
  [[nodiscard]] bool ReadsSomeRows() const { return this->IsSampled() || ensemble > 1; }
  /** @brief Whether a round releases candidates of its own. */
  [[nodiscard]] bool ReleasesCandidates(std::int32_t round) const {
    return this->NumPrivateFeatures() > 0 && round < candidates.rounds;
  }
  /** @brief Whether neighbours differ by all rows of a person, instead of by one row. */
  [[nodiscard]] bool IsOfPersons() const { return row_bound.of_person; }
  /** @brief Whether gradients are those of the squared loss as XGBoost makes them. */
  [[nodiscard]] bool IsSquaredLoss() const { return objective == "reg:squarederror" && !loss; }
  /** @brief Predictions of a row by the plugin's own loss, each with a tree in a round; else 0. */
  [[nodiscard]] std::int32_t NumOutputs() const {
    return loss ? static_cast<std::int32_t>(loss->NumOutputs()) : 0;
  }
  /** @brief Whether all trees of a round have the leaves of the first output's. */
  [[nodiscard]] bool SharesLeaves(std::int32_t round) const {
    return loss && loss->SharesLeaves(round);
  }
  /** @brief What a leaf weight of one adds to the margin. */
  [[nodiscard]] double MarginUnit(TreeOfRound of) const {
    return loss ? loss->Unit(of.round, of.class_idx) : row_bound.scale;
  }
  /** @brief Columns of labels: one, or one for each target. */
  [[nodiscard]] std::size_t NumLabels() const { return loss ? loss->NumLabels() : 1; }
  [[nodiscard]] bool IsMulticlass() const {
    return objective == "multi:softprob" || objective == "multi:softmax";
  }
  /** @brief Whether labels are 0 and 1; the margin that is predicted raw has the same gradients. */
  [[nodiscard]] bool IsBinary() const {
    return objective == "binary:logistic" || objective == "binary:logitraw";
  }
  /** @brief Whether splits and leaves are both read from the same noisy sums. */
  [[nodiscard]] bool HasNoisySums() const {
    return split == SplitChoice::kHistogram || split == SplitChoice::kPartial;
  }

  [[nodiscard]] std::int32_t NumPrivateFeatures() const {
    return std::count_if(features.cbegin(), features.cend(),
                         [](auto const& f) { return f.kind == FeaturePlan::Kind::kPrivate; });
  }
  [[nodiscard]] bool IsOblivious(std::int64_t tree_idx) const {
    return shape == TreeShape::kOblivious || (shape == TreeShape::kAlternate && tree_idx % 2 == 0);
  }
};

/** @brief Throw dmlc::Error for a plan that no proof covers, or whose numbers do not fit. */
void CheckPlan(Plan const& plan);

/** @brief Parse and check; throws dmlc::Error that names the field at fault. */
[[nodiscard]] Plan ParsePlan(std::string const& json);
}  // namespace xgboost::dp
