/**
 * The plan of a private training: everything that xgb_dp has calibrated, declared or chosen.
 *
 * It is the parameter `dp_plan` (JSON). Integers are JSON integers; real numbers are JSON strings,
 * because XGBoost stores JSON numbers in 32 bits. The line that declares a field also reads and
 * checks it, and fields are read in the order of their declarations. There are no defaults, so no
 * training runs without a calibration.
 *
 * The plan is fixed before anything is released, and claimed by its SHA-256. Values from releases
 * before the first tree form the state (`dp_state`). It overrides a few fields that do not affect
 * any bound or noise, see Plan::Apply.
 *
 * Only xgb_dp/accounting computes sensitivities and privacy costs, from the plan and the recorded
 * draws.
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
 * @brief Exclusive upper limit on the range of utilities. The range times 2^kEpsBits is the
 *        denominator of the exponential mechanism; an overflow would void the guarantee.
 */
inline constexpr std::uint64_t kMaxScoreRange = std::uint64_t{1} << (63 - kEpsBits);
inline constexpr std::int32_t kMaxRounds = 1 << 20;

// Each enumeration is followed by the names of its values in plans and ledgers, in order.

enum class TreeShape { kAlternate, kPerNode, kOblivious };
inline constexpr char const* kShapes[] = {"alternate", "per_node", "oblivious"};
enum class SplitChoice { kExponential, kRandom, kHistogram, kPartial };
inline constexpr char const* kSplits[] = {"exponential", "random", "histogram", "partial"};
/** @brief Whether the trees of a round, one for each class, share their splits. */
enum class ClassTrees { kPerClass, kJoint };
inline constexpr char const* kClassTrees[] = {"per_class", "joint"};
enum class Score { kL1, kNewton, kGain };
inline constexpr char const* kScores[] = {"l1", "newton", "gain"};

/** @brief Noise on the sums of leaves, or Laplace noise on leaf values. */
enum class LeafNoise { kGaussian, kLaplace, kOutput };
inline constexpr char const* kLeafNoises[] = {"gaussian", "laplace", "output"};
/** @brief Source of private candidates. */
enum class CandidateKind { kQuantileTree, kHistogram, kAdaptive };
inline constexpr char const* kCandidateKinds[] = {"quantile_tree", "histogram", "adaptive"};

/** @brief The possible splits of a feature. All but `kPrivate` are public. */
struct FeaturePlan {
  enum class Kind { kPrivate, kCuts, kCategorical } kind{Kind::kPrivate};
  static constexpr char const* kKinds[] = {"private", "cuts", "categorical"};
  std::vector<float> cuts;       // kCuts: sorted, finite
  std::vector<float> grid;       // kPrivate: public edges of a histogram, or ends of a tree
  std::int32_t n_categories{0};  // kCategorical: codes 0 .. n - 1
};

/** @brief Read the `features` of a plan or of a request. */
[[nodiscard]] std::vector<FeaturePlan> ReadFeatures(JsonReader const& in);

/** @brief Parameters of the release of quantile trees: the counts of keys at all levels. */
struct QuantilePlan : protected JsonReader {
  std::int32_t levels = Int("levels", 2, 17);  // including the root
  std::int32_t shift = Int("shift", 0, 26);    // counts are multiplied by 2^shift before noise
  std::uint64_t sigma2;                        // variance of the noise on these integers
  std::int32_t max_bin = Int("max_bin", 2, 1 << 16);  // target number of bins of a feature

  QuantilePlan(JsonReader const& in, bool is_silent)
      : JsonReader{in}, sigma2{ReadSigma2(in, is_silent)} {}
};

struct CandidatePlan : QuantilePlan {
  CandidateKind kind = Enum<CandidateKind>("kind", kCandidateKinds);
  std::int32_t rounds = Int("rounds", 1, kMaxRounds);  // number of first rounds that release them
  bool hessian = Bool("hessian");  // the weight of a row is its bounded Hessian, not 1
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
  double eta_warmup =
      Real("eta_warmup", 1e-3, 1.0);  // learning rate of the first round, relative to the last
  double lambda = Real("lambda", 0.0, 1e12);
  double alpha = Real("alpha", 0.0, 1e12);
  double max_delta_step = Real("max_delta_step", 0.0, 1e12);  // 0: no clip
  // Floor of the noisy Hessian; kOutput: of the exact count.
  double min_child_weight = Real("min_child_weight", 0.0, 1e12);
  bool spread =
      Bool("spread");  // allow a larger contribution of persons with rows in several leaves
  bool shrinkage = Bool("shrinkage");
  bool strata = Bool("strata");  // shrink the effects of the selections of a complete tree
  double noise_share = Real("noise_share", 1e-9, 1.0);  // of its variance, in the shrinkage
  double prior_max = Real("prior_max", 1e-9, 1e12);

  /** @param from_splits Whether leaves reuse the noisy sums of the last splits. */
  LeafPlan(JsonReader const& in, bool is_silent, bool from_splits)
      : JsonReader{in},
        sigma2{ReadSigma2(in, is_silent || from_splits || noise != LeafNoise::kGaussian)},
        scale{ReadScale(in, is_silent || noise == LeafNoise::kGaussian)} {}
};

/** @brief Release of the mean residual of a regression after its last tree, twice. */
struct CorrectionPlan : private JsonReader {
  static constexpr std::int32_t kTimes = 2;

  bool is_on = Bool("on");
  double rows = Real("rows", 0.0, 1e15);  // released or public; 0 if unknown
  std::uint64_t sigma2;                   // variance of the noise on each sum, in its unit

  CorrectionPlan(JsonReader const& in, bool is_silent)
      : JsonReader{in}, sigma2{ReadSigma2(in, is_silent || !is_on)} {}
};

/** @brief Position of a tree in a training. The unit of its margins depends on it. */
struct TreeIndex {
  std::int32_t round;
  std::size_t class_idx;
};

struct Plan : private JsonReader {
  static constexpr std::int64_t kSampleAll = std::int64_t{1} << kSampleBits;

  /** @param state Values from releases before the first tree. */
  Plan(JsonReader const& in, JsonReader const& state) : JsonReader{in} { this->Apply(state); }

  KnownNoise known = ReadKnownNoise(*this);  // for tests; the model is marked non-private
  bool noise_free = known.is_none;
  std::string id = Text("id");  // names this calibration in the ledger
  std::string objective = Text("objective");
  std::int32_t n_features = Int("n_features", 1, std::numeric_limits<std::int32_t>::max());
  // Trees per round and parallel tree, as in the proof of the row bound.
  std::int32_t num_class = Int("num_class", 1, 1 << 16);
  std::int32_t rounds = Int("rounds", 1, kMaxRounds);
  std::int32_t depth = Int("depth", 1, 10);  // sums of 2^10 utilities stay below 2^62
  // Trees of one class in one round, on the same gradients.
  std::int32_t parallel_trees = Int("parallel_trees", 1, 1 << 20);
  std::int32_t features_per_tree = Int("features_per_tree", 1, n_features);
  bool cyclic_features = Bool("cyclic_features");  // in turn, not at random
  // Public weights of the features; empty for equal ones.
  std::vector<std::int64_t> feature_weights =
      Ints<std::int64_t>("feature_weights", 1, std::int64_t{1} << 31);
  // All columns of all trees, ascending; empty for random ones. The plan has the first columns, and
  // the state the most important ones.
  std::vector<bst_feature_t> offered = Has("offered")
                                           ? Ints<bst_feature_t>("offered", 0, n_features - 1)
                                           : std::vector<bst_feature_t>{};
  TreeShape shape = Enum<TreeShape>("shape", kShapes);
  SplitChoice split = Enum<SplitChoice>("split", kSplits);
  Score score = Enum<Score>("score", kScores);
  ClassTrees class_trees = Enum<ClassTrees>("class_trees", kClassTrees);
  double score_clip = Real("score_clip", 0.0, 1e6);       // largest leaf weight of the Newton score
  std::int32_t split_levels = Int("split_levels", 1, 4);  // levels per selection
  // Random partitions per feature and selection.
  std::int32_t split_candidates = Int("split_candidates", 1, 1 << 12);
  // Weight of earlier released gains in the choice of features.
  double split_prior = Real("split_prior", 0.0, 0.999);
  bool no_split = Bool("no_split");
  // Public bonus of "no split", in utility units for C = 1.
  double gamma = Real("gamma", -1e12, 1e12);
  // Variance of the noise on each sum of a noisy histogram.
  std::uint64_t histogram_sigma2 =
      ReadSigma2(Part("histogram"), noise_free || !this->HasNoisySums());
  // eps0 of one selection is eps_num / 2^kEpsBits.
  std::uint64_t eps_num =
      Part("selection").Int("eps_num", noise_free ? 0 : 1, (std::int64_t{1} << 47) - 1);
  // Range of the utility under add/remove, in its units.
  std::uint64_t score_range = Part("selection").Int("range", 1, kMaxScoreRange - 1);
  // A round reads each row with probability sampling_num / 2^kSampleBits.
  std::int64_t sampling_num = Int("sampling_num", 1, kSampleAll);
  // Rounds per ensemble; they read disjoint parts of the rows.
  std::int32_t ensemble = Int("ensemble", 1, 1 << 16);
  bool base_margin = Bool("base_margin");  // whether rows have their own margins
  Masking masking = ReadMasking(Part("masking"));
  RowBound row_bound{Part("row_bound"), Enum<bool>("unit", kUnits), Int("grid_bits", 4, 20),
                     objective == "reg:squarederror" && !Has("loss")};
  std::shared_ptr<Loss const> loss =  // null if the plan has no loss of its own
      Has("loss")
          ? ReadLoss(Part("loss"), objective, {row_bound.target_lower, row_bound.target_upper})
          : nullptr;
  std::vector<FeaturePlan> features = ReadFeatures(*this);
  // -1, 0 or 1 for each feature.
  std::vector<std::int32_t> monotone = Ints<std::int32_t>("monotone", -1, 1);
  // Sets of features that may share a path; empty for no limit.
  std::vector<std::vector<bst_feature_t>> interactions = this->ReadInteractions();
  CandidatePlan candidates{Part("candidates"), noise_free || this->NumPrivateFeatures() == 0};
  LeafPlan leaf{Part("leaf"), noise_free, this->HasNoisySums()};
  CorrectionPlan correction{Part("correction"), noise_free};

  [[nodiscard]] std::int32_t SelectionsPerTree() const {
    return (depth + split_levels - 1) / split_levels;
  }
  /** @brief Whether the trees of all classes share their splits. */
  [[nodiscard]] bool SharesSplits() const { return class_trees == ClassTrees::kJoint; }
  /** @brief The class whose tree provides the splits for the tree of this class. */
  [[nodiscard]] std::size_t SplitClass(std::size_t class_idx) const {
    return this->SharesSplits() ? 0 : class_idx;
  }
  /**
   * @brief Learning rate of a tree. It rises linearly over the rounds, and is divided by the number
   *        of parallel trees, because they are averaged.
   */
  [[nodiscard]] double Step(std::int32_t round) const {
    double to_go = rounds > 1 ? static_cast<double>(rounds - 1 - round) / (rounds - 1) : 0.0;
    return leaf.eta * (1.0 - (1.0 - leaf.eta_warmup) * to_go) / parallel_trees;
  }
  [[nodiscard]] bool IsSampled() const { return sampling_num < kSampleAll; }
  /** @brief Whether a round reads only some of the rows. */
  [[nodiscard]] bool ReadsSomeRows() const { return this->IsSampled() || ensemble > 1; }
  [[nodiscard]] bool ReleasesCandidates(std::int32_t round) const {
    return this->NumPrivateFeatures() > 0 && round < candidates.rounds;
  }
  /** @brief Whether neighbours differ by all rows of a person instead of one row. */
  [[nodiscard]] bool IsPersonLevel() const { return row_bound.person_level; }
  /** @brief Whether gradients come from XGBoost's squared loss. */
  [[nodiscard]] bool IsSquaredLoss() const { return objective == "reg:squarederror" && !loss; }
  /** @brief Whether the row bound computes the gradients of logistic loss from margins. */
  [[nodiscard]] bool IsLogistic() const {
    return this->IsBinary() && !loss && row_bound.mode == RowBound::Mode::kPrediction;
  }
  /** @brief Number of outputs of the plan's loss, each with a tree per round; 0 without a loss. */
  [[nodiscard]] std::int32_t NumOutputs() const {
    return loss ? static_cast<std::int32_t>(loss->NumOutputs()) : 0;
  }
  /** @brief Whether all trees of a round reuse the leaves of the first output. */
  [[nodiscard]] bool SharesLeaves(std::int32_t round) const {
    return loss && loss->SharesLeaves(round);
  }
  /** @brief Margin added by a leaf weight of one. */
  [[nodiscard]] double MarginUnit(TreeIndex idx) const {
    return loss ? loss->Unit(idx.round, idx.class_idx) : row_bound.scale;
  }
  /** @brief Number of label columns: one, or one for each target. */
  [[nodiscard]] std::size_t NumLabels() const { return loss ? loss->NumLabels() : 1; }
  [[nodiscard]] bool IsMulticlass() const {
    return objective == "multi:softprob" || objective == "multi:softmax";
  }
  /**
   * @brief Whether labels are 0 and 1. binary:logitraw has the same gradients as binary:logistic.
   */
  [[nodiscard]] bool IsBinary() const {
    return objective == "binary:logistic" || objective == "binary:logitraw";
  }
  /** @brief Whether splits and leaves use the same noisy sums. */
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
   * @brief Apply values released before the first tree. Privacy does not depend on them: bounds and
   *        noise are integers on a grid, and the state only sets the real size of a grid step or
   *        is used on released sums.
   */
  void Apply(JsonReader const& state);
  /** @brief Keep as many private columns as were planned; give the others one public cut. */
  void LimitCandidates();
};

/** @brief Throw dmlc::Error for a plan without a privacy proof, or with numbers that overflow. */
void CheckPlan(Plan const& plan);

/** @brief Parse and check; throws dmlc::Error that names the field at fault. */
[[nodiscard]] Plan ParsePlan(std::string const& plan, std::string const& state = "{}");

/** @brief The selections of one level of a tree. */
[[nodiscard]] inline SelectionEvent SplitEvent(Plan const& plan) {
  return {"splits", plan.eps_num, plan.score_range};
}
/** @brief The noisy histograms of one level, for one tree of each class. */
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

/** @brief All releases of a round that reads only some of the rows. */
[[nodiscard]] RoundEvent MakeRoundEvent(Plan const& plan, std::int32_t round);
}  // namespace xgboost::dp
