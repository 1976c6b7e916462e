/**
 * The plan of one private training: everything that xgb_dp has calibrated, declared or chosen.
 *
 * It travels as the parameter `dp_plan` (JSON). Integers are JSON integers, real numbers are JSON
 * strings (XGBoost's JSON numbers are 32-bit floats). The line of a field declares, reads and
 * checks it, in the order of the lines. A plan that lacks a field is refused: there are no
 * permissive defaults, so nothing trains without a calibration.
 *
 * The plan is fixed before anything is released, and claimed by its SHA-256. What follows from
 * releases before the first tree is the state (`dp_state`). It overrides a few fields, which no
 * bound and no noise depends on: see Plan::Apply.
 *
 * What one unit of privacy can change of a release, and with it the cost of a draw, is computed
 * from the plan and from the record of draws in xgb_dp/accounting, and there alone.
 *
 * Proof: docs/proofs/sampling.md
 */
#pragma once

#include <algorithm>  // for count_if
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t, uint64_t, int32_t
#include <limits>     // for numeric_limits
#include <memory>     // for shared_ptr
#include <string>     // for string
#include <vector>     // for vector

#include "plugin_cpp/json_reader.h"      // for JsonReader, ReadKnownNoise, ReadSigma2, ReadScale
#include "plugin_cpp/loss/loss.h"        // for Loss, ReadLoss
#include "plugin_cpp/plan/row_bound.h"   // for RowBound
#include "plugin_cpp/release/ledger.h"   // for kEpsBits, kSampleBits, NoiseEvent, SelectionEvent
#include "plugin_cpp/release/masking.h"  // for Masking
#include "xgboost/base.h"                // for bst_feature_t

namespace xgboost::dp {
// The two low-level parameters of private training.
inline constexpr char kPlanKey[] = "dp_plan";
inline constexpr char kStateKey[] = "dp_state";
/**
 * @brief Largest range, exclusive: with the bits of eps0 it must fit the denominator of the
 *        exponential mechanism. A denominator that wraps around would void the guarantee.
 */
inline constexpr std::uint64_t kMaxScoreRange = std::uint64_t{1} << (63 - kEpsBits);
inline constexpr std::int32_t kMaxRounds = 1 << 20;

// What plans and ledgers call the values of an enumeration, in their order, follows it.

enum class TreeShape { kAlternate, kPerNode, kOblivious };
inline constexpr char const* kShapes[] = {"alternate", "per_node", "oblivious"};
enum class SplitChoice { kExponential, kRandom, kHistogram, kPartial };
inline constexpr char const* kSplits[] = {"exponential", "random", "histogram", "partial"};
/** @brief Whether the trees of a round, one for each class, share their splits. */
enum class ClassTrees { kPerClass, kJoint };
inline constexpr char const* kClassTrees[] = {"per_class", "joint"};
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
  std::vector<float> grid;       // kPrivate: public edges of a noisy histogram, or ends of a tree
  std::int32_t n_categories{0};  // kCategorical: codes 0 .. n - 1
};

/** @brief The `features` of a plan or of a request. */
[[nodiscard]] std::vector<FeaturePlan> ReadFeatures(JsonReader const& in);

/** @brief Counts of keys at all levels of quantile trees. */
struct QuantilePlan : protected JsonReader {
  std::int32_t levels = Int("levels", 2, 17);  // of the tree, the root included
  std::int32_t shift = Int("shift", 0, 26);    // counts are multiplied by 2^shift before noise
  std::uint64_t sigma2;                        // variance of Gaussian noise on these integers
  std::int32_t max_bin = Int("max_bin", 2, 1 << 16);  // target number of bins of a feature

  QuantilePlan(JsonReader const& in, bool is_silent)
      : JsonReader{in}, sigma2{ReadSigma2(in, is_silent)} {}
};

struct CandidatePlan : QuantilePlan {
  CandidateKind kind = Enum<CandidateKind>("kind", kCandidateKinds);
  std::int32_t rounds = Int("rounds", 1, kMaxRounds);  // that release them, from the first one on
  bool hessian = Bool("hessian");  // rows weigh their bounded Hessian instead of one
  bool laplace = Bool("laplace");
  std::uint64_t scale;  // scale of Laplace noise on counts

  CandidatePlan(JsonReader const& in, bool is_silent)
      : QuantilePlan{in, is_silent || in.Bool("laplace")},
        scale{ReadScale(in, is_silent || !laplace)} {}
};

struct LeafPlan : private JsonReader {
  LeafNoise noise = Enum<LeafNoise>("noise", kLeafNoises);
  std::uint64_t sigma2;  // variance of Gaussian noise on grid integers, for G and for H
  std::uint64_t scale;   // scale of Laplace noise
  bool geometric_clip = Bool("geometric_clip");  // kOutput: clip to (1 - eta)^t, where C = 1
  double eta = Real("eta", 0.0, 1e6);
  double eta_start = Real("eta_start", 1e-3, 1.0);  // rate of the first round over the last one's
  double lambda = Real("lambda", 0.0, 1e12);
  double alpha = Real("alpha", 0.0, 1e12);
  double max_delta_step = Real("max_delta_step", 0.0, 1e12);  // 0: no clip
  // Floor of the noisy Hessian; kOutput: of the exact count.
  double min_child_weight = Real("min_child_weight", 0.0, 1e12);
  bool spread = Bool("spread");  // persons count more where their rows are in several leaves
  bool shrinkage = Bool("shrinkage");
  bool strata = Bool("strata");  // shrink effects of a tree's selections, where it is complete
  double prior_max = Real("prior_max", 1e-9, 1e12);

  /** @param of_splits Whether leaves are read from the last noisy sums of splits. */
  LeafPlan(JsonReader const& in, bool is_silent, bool of_splits)
      : JsonReader{in},
        sigma2{ReadSigma2(in, is_silent || of_splits || noise != LeafNoise::kGaussian)},
        scale{ReadScale(in, is_silent || noise == LeafNoise::kGaussian)} {}
};

/** @brief Release of the mean residual of a regression after its last tree, and again. */
struct CorrectionPlan : private JsonReader {
  static constexpr std::int32_t kTimes = 2;

  bool is_on = Bool("on");
  double rows = Real("rows", 0.0, 1e15);  // released or public; 0 where they are not known
  std::uint64_t sigma2;                   // variance of the noise on each sum, in units of its own

  CorrectionPlan(JsonReader const& in, bool is_silent)
      : JsonReader{in}, sigma2{ReadSigma2(in, is_silent || !is_on)} {}
};

/** @brief Which tree of a training it is, by which its margins have a unit. */
struct TreeOfRound {
  std::int32_t round;
  std::size_t class_idx;
};

struct Plan : private JsonReader {
  static constexpr std::int64_t kSampleAll = std::int64_t{1} << kSampleBits;

  /** @param state Values that follow from releases before the first tree. */
  Plan(JsonReader const& in, JsonReader const& state) : JsonReader{in} { this->Apply(state); }

  KnownNoise known = ReadKnownNoise(*this);  // of tests: the model is marked non-private
  bool noise_free = known.is_none;
  std::string id = Text("id");  // names this calibration in the ledger
  std::string objective = Text("objective");
  std::int32_t n_features = Int("n_features", 1, std::numeric_limits<std::int32_t>::max());
  // Trees a round of each parallel tree, as many as the bound of a row is proved for.
  std::int32_t num_class = Int("num_class", 1, 1 << 16);
  std::int32_t rounds = Int("rounds", 1, kMaxRounds);
  std::int32_t depth = Int("depth", 1, 10);  // sums of 2^10 utilities stay below 2^62
  // Trees of one class in one round, on the same gradients.
  std::int32_t parallel_trees = Int("parallel_trees", 1, 1 << 20);
  std::int32_t features_per_tree = Int("features_per_tree", 1, n_features);
  bool cyclic_features = Bool("cyclic_features");  // take them in turn; else at random
  // Public chances of the features; empty: even.
  std::vector<std::int64_t> feature_weights =
      Ints<std::int64_t>("feature_weights", 1, std::int64_t{1} << 31);
  // All columns that trees use, ascending; empty: as drawn. The plan has the first columns, and the
  // state those that matter most.
  std::vector<bst_feature_t> offered = Has("offered")
                                           ? Ints<bst_feature_t>("offered", 0, n_features - 1)
                                           : std::vector<bst_feature_t>{};
  TreeShape shape = Enum<TreeShape>("shape", kShapes);
  SplitChoice split = Enum<SplitChoice>("split", kSplits);
  Score score = Enum<Score>("score", kScores);
  ClassTrees class_trees = Enum<ClassTrees>("class_trees", kClassTrees);
  double score_clip = Real("score_clip", 0.0, 1e6);       // largest leaf weight of the Newton score
  std::int32_t split_levels = Int("split_levels", 1, 4);  // levels that one selection fills
  // Partitions of a feature that are drawn for one selection.
  std::int32_t split_candidates = Int("split_candidates", 1, 1 << 12);
  // Weight of earlier released gains in the choice of features.
  double split_prior = Real("split_prior", 0.0, 0.999);
  bool no_split = Bool("no_split");
  // Public bonus of "no split", in utility units where C = 1.
  double gamma = Real("gamma", -1e12, 1e12);
  // Variance of the noise on each sum of a noisy histogram.
  std::uint64_t histogram_sigma2 =
      ReadSigma2(Part("histogram"), noise_free || !this->HasNoisySums());
  // eps0 of one selection is eps_num / 2^kEpsBits.
  std::uint64_t eps_num =
      Part("selection").Int("eps_num", noise_free ? 0 : 1, (std::int64_t{1} << 47) - 1);
  // Of the utility under add/remove, in its units.
  std::uint64_t score_range = Part("selection").Int("range", 1, kMaxScoreRange - 1);
  // A round reads each row with probability sampling_num / 2^kSampleBits.
  std::int64_t sampling_num = Int("sampling_num", 1, kSampleAll);
  // Rounds of one ensemble, which read disjoint parts of the rows.
  std::int32_t ensemble = Int("ensemble", 1, 1 << 16);
  bool base_margin = Bool("base_margin");  // whether rows bring their own margins
  Masking masking = ReadMasking(Part("masking"));
  RowBound row_bound{Part("row_bound"), Enum<bool>("unit", {{"row", false}, {"person", true}}),
                     Int("grid_bits", 4, 20), objective == "reg:squarederror" && !Has("loss")};
  std::shared_ptr<Loss const> loss =  // null where the gradients are XGBoost's
      Has("loss")
          ? ReadLoss(Part("loss"), objective, {row_bound.target_lower, row_bound.target_upper})
          : nullptr;
  std::vector<FeaturePlan> features = ReadFeatures(*this);
  // -1, 0 or 1 for each feature.
  std::vector<std::int32_t> monotone = Ints<std::int32_t>("monotone", -1, 1);
  // Sets that may share a path; empty: all.
  std::vector<std::vector<bst_feature_t>> interactions = this->ReadInteractions();
  CandidatePlan candidates{Part("candidates"), noise_free || this->NumPrivateFeatures() == 0};
  LeafPlan leaf{Part("leaf"), noise_free, this->HasNoisySums()};
  CorrectionPlan correction{Part("correction"), noise_free};

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
  [[nodiscard]] bool ReleasesCandidates(std::int32_t round) const {
    return this->NumPrivateFeatures() > 0 && round < candidates.rounds;
  }
  /** @brief Whether neighbours differ by all rows of a person, instead of by one row. */
  [[nodiscard]] bool IsPersonLevel() const { return row_bound.person_level; }
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

 private:
  [[nodiscard]] std::vector<std::vector<bst_feature_t>> ReadInteractions() const;
  /**
   * @brief Take the values of a state. Bounds and noise are integers on a grid, and the state says
   *        what a step of the grid is worth; or it is used on sums that are noisy already.
   */
  void Apply(JsonReader const& state);
  /** @brief Give one public cut to private columns beyond those for which counts are planned. */
  void LimitCandidates();
};

/** @brief Throw dmlc::Error for a plan that no proof covers, or whose numbers do not fit. */
void CheckPlan(Plan const& plan);

/** @brief Parse and check; throws dmlc::Error that names the field at fault. */
[[nodiscard]] Plan ParsePlan(std::string const& plan, std::string const& state = "{}");

/** @brief The selections of one level of a tree. */
[[nodiscard]] inline SelectionEvent SplitEvent(Plan const& plan) {
  return {"splits", plan.eps_num, plan.score_range};
}
/** @brief The noisy histograms of one level, of one tree for each class. */
[[nodiscard]] inline NoiseEvent HistogramEvent(Plan const& plan) {
  return {"histograms", false, plan.histogram_sigma2};
}
[[nodiscard]] inline NoiseEvent LeafEvent(Plan const& plan) {
  bool is_laplace = plan.leaf.noise != LeafNoise::kGaussian;
  return {"leaves", is_laplace, is_laplace ? plan.leaf.scale : plan.leaf.sigma2};
}
[[nodiscard]] inline NoiseEvent CorrectionEvent(Plan const& plan) {
  return {"correction", false, plan.correction.sigma2};
}
[[nodiscard]] inline NoiseEvent CandidateEvent(Plan const& plan) {
  auto const& counts = plan.candidates;
  return {"candidates", counts.laplace, counts.laplace ? counts.scale : counts.sigma2};
}

/** @brief All that a round may release of the rows it reads, where it reads some of them only. */
[[nodiscard]] RoundEvent EventOfRound(Plan const& plan, std::int32_t round);
}  // namespace xgboost::dp
