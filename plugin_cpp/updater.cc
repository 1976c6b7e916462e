/**
 * The private tree updater, `tree_method=dp_hist`. Update() reads as the algorithm in the docs:
 * per tree bounded integer gradients, candidates where they are due, private splits level by level,
 * noisy leaves.
 */
#include <algorithm>  // for find, find_if, transform
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t, int64_t, uint8_t, uint16_t, uint64_t
#include <cstdlib>    // for strtod
#include <memory>     // for unique_ptr, make_unique, shared_ptr
#include <string>     // for string, to_string
#include <utility>    // for move
#include <vector>     // for vector

#include "collective/communicator-inl.h"       // for GetRank
#include "common/timer.h"                      // for Monitor
#include "plugin_cpp/rows/bins.h"        // for BinRows
#include "plugin_cpp/candidates/candidates.h"     // for CandidateRelease
#include "plugin_cpp/checks.h"                 // for CheckMatrix, CheckRows, CheckSums, CheckClaim
#include "plugin_cpp/split/features.h"            // for FeaturesOfTree
#include "plugin_cpp/release/workers.h"            // for FromRankZero
#include "plugin_cpp/rows/gradient.h"               // for QuantiseGradients, GradientSum
#include "plugin_cpp/grower.h"                 // for TreeGrower
#include "plugin_cpp/guard.h"                  // for kPlanKey, PrivateUpdater, Attributes
#include "plugin_cpp/leaf/values.h"            // for FinishTree, LeafShrinkage
#include "plugin_cpp/leaf/release.h"           // for ReleaseLeaves, ReleasedLeaf
#include "plugin_cpp/release/ledger.h"                 // for Ledger
#include "plugin_cpp/random/chacha20.h"         // for WipeStack
#include "plugin_cpp/plan/plan.h"                   // for Plan, ParsePlan
#include "plugin_cpp/random/source.h"          // for MakeRandomSource, MakeShareSource
#include "plugin_cpp/round_events.h"           // for RecordRound
#include "plugin_cpp/rows/sampling.h"               // for DrawSample, DrawParts
#include "plugin_cpp/release/masked_sums.h"     // for MaskedSums
#include "plugin_cpp/release/pads.h"            // for FindPads
#include "plugin_cpp/split/history.h"          // for SplitHistory
#include "tree/hist/evaluate_splits.h"         // for UpdatePredictionCacheImpl
#include "tree/param.h"                        // for TrainParam
#include "xgboost/gradient.h"                  // for GradientContainer
#include "xgboost/json.h"                      // for Json
#include "xgboost/logging.h"                   // for CHECK, LOG
#include "xgboost/task.h"                      // for ObjInfo
#include "xgboost/tree_updater.h"              // for TreeUpdater

namespace xgboost::dp {
DMLC_REGISTRY_FILE_TAG(updater_dp);

namespace {
std::string const* Find(Args const& args, std::string const& key) {
  auto it = std::find_if(args.cbegin(), args.cend(), [&](auto const& kv) { return kv.first == key; });
  return it == args.cend() ? nullptr : &it->second;
}
}  // namespace

class DpHistMaker : public TreeUpdater, public PrivateUpdater {
 public:
  explicit DpHistMaker(Context const* ctx, ObjInfo const*) : TreeUpdater{ctx} {
    monitor_.Init("DpHistMaker");
  }

  void Configure(Args const& args) override {
    auto plan = Find(args, kPlanKey);
    if (plan && this->Start(*plan)) {
      // The row bound was proved for this objective. Others may couple rows.
      auto objective = Find(args, "objective");
      CHECK(objective && *objective == training_->plan.objective)
          << "The plan was calibrated for another objective: set `" << training_->plan.objective
          << "`.";
      auto n_classes = Find(args, "num_class");
      CHECK(training_->plan.n_groups == 1 ||
            (n_classes && *n_classes == std::to_string(training_->plan.n_groups)))
          << "The plan was calibrated for another number of classes.";
      auto scale = Find(args, "scale_pos_weight");
      CHECK(!scale || training_->plan.IsBinary() ||
            std::strtod(scale->c_str(), nullptr) == 1.0)
          << "`scale_pos_weight` is for binary classification.";
      return;
    }
    if (!training_) {
      return;
    }
    // The plan was calibrated and recorded with the settings of its start.
    static std::vector<std::string> const kHarmless{
        "nthread", "n_jobs", "verbosity", "eval_metric", "disable_default_eval_metric",
        "validate_parameters", "seed", "random_state", kPlanKey};
    auto n_groups = training_->plan.n_groups;
    for (auto const& kv : args) {
      // The learner repeats the number of classes at each configuration; one class is 0 or 1 for it.
      if (kv.first == "num_class" && (kv.second == std::to_string(n_groups) ||
                                      (n_groups == 1 && kv.second == "0"))) {
        continue;
      }
      CHECK(std::find(kHarmless.cbegin(), kHarmless.cend(), kv.first) != kHarmless.cend())
          << "`" << kv.first << "` cannot change in the middle of a private training.";
    }
  }

  void LoadConfig(Json const& in) override {
    // A copy, a pickle or the booster at the end of `xgboost.train`: its noise is spent. It predicts
    // and keeps its ledger, but grows no tree without a new plan.
    training_.reset();
    auto const& config = get<Object const>(in);
    plan_text_ = get<String const>(get<Object const>(config.at("dp_train_param")).at(kPlanKey));
    auto it = config.find("dp_ledger");
    sealed_ledger_ = it == config.cend() ? std::string{} : get<String const>(it->second);
  }

  void SaveConfig(Json* p_out) const override {
    auto& out = *p_out;
    out["dp_train_param"] = Object{};
    out["dp_train_param"][kPlanKey] = String{plan_text_};
    out["dp_ledger"] = String{training_ ? this->LedgerText() : sealed_ledger_};
  }

  [[nodiscard]] char const* Name() const override { return "grow_dp_histmaker"; }

  // The node positions are ours alone: the adaptive leaves of some objectives, which replace leaf
  // values by exact quantiles of residuals, must not see them.
  [[nodiscard]] bool HasNodePosition() const override { return false; }

  void Update(tree::TrainParam const* param, GradientContainer* in_gpair, DMatrix* p_fmat,
              common::Span<HostDeviceVector<bst_node_t>> out_position,
              std::vector<RegTree*> const& trees) override {
    CHECK(training_ && training_->data.get() == p_fmat && !training_->busy);
    auto& training = *training_;
    auto const& plan = training.plan;
    CHECK_EQ(trees.size(), static_cast<std::size_t>(plan.parallel_trees))
        << "The plan was calibrated for another `num_parallel_tree`.";
    CHECK(!trees.front()->IsMultiTarget() && !in_gpair->HasValueGrad())
        << "`multi_strategy=multi_output_tree` is not available with `dp_hist`.";
    CHECK_LT(training.updates, training.MaxUpdates())
        << "The calibrated number of trees is reached: the privacy budget is spent.";
    // Not CHECK_EQ, which would print the number of rows.
    CHECK(in_gpair->Grad()->Shape(0) == p_fmat->Info().num_row_);
    CheckTrainParam(*param);
    CheckMatrix(p_fmat, plan);
    // An exception from here on may leave draws made and half recorded: the flag stays set, and no
    // further tree is grown.
    training.busy = true;

    if (!training.grower) {
      monitor_.Start("Checks");
      if (training.masked) {
        training.masked->Open(FindPads(plan.id, true));
      }
      CheckSums(ctx_, plan, p_fmat->Info().num_row_);
      CheckRows(ctx_, plan, p_fmat);
      monitor_.Stop("Checks");
    }
    // The learner calls once per class; a round is complete with its last class.
    auto group = training.updates % plan.n_groups;
    auto round = training.updates / plan.n_groups;
    ++training.updates;
    if (group == 0) {
      this->StartRound(round, p_fmat->Info().num_row_);
    }

    monitor_.Start("Gradients");
    auto total = QuantiseGradients(ctx_, plan.row_bound, p_fmat->Info(),
                                   in_gpair->Grad()->HostView(), training.sample, &training.gpair);
    monitor_.Stop("Gradients");

    if (group == 0 && training.candidates->IsDue(round)) {
      monitor_.Start("Candidates");
      auto cuts = training.candidates->Release(p_fmat, training.gpair);
      monitor_.Stop("Candidates");
      monitor_.Start("Bins");
      training.grower.reset();  // frees the last bins first
      auto pages = BinRows(ctx_, cuts, p_fmat);
      training.grower = std::make_unique<TreeGrower>(ctx_, plan, std::move(cuts), std::move(pages),
                                                     training.rng.get(), training.structure.get(),
                                                     training.masked.get(), &training.ledger);
      monitor_.Stop("Bins");
    }

    for (std::size_t i = 0; i < trees.size(); ++i) {
      // Trees of one class, counted over all rounds.
      auto tree_idx = static_cast<std::int64_t>(round) * plan.parallel_trees +
                      static_cast<std::int64_t>(i);
      this->GrowTree(group, tree_idx, total, trees[i], &out_position[i].HostVector());
    }
    training.last_tree = trees.back();
    training.busy = false;
    WipeStack();
  }

  void BeforeIteration(Attributes const& attributes,
                       std::shared_ptr<DMatrix> const& train) override {
    CHECK(training_) << (sealed_ledger_.empty()
                             ? "`dp_hist` has no calibrated plan: call `xgboost.train` with "
                               "`dp_epsilon` and `dp_delta`."
                             : "This training is finished and its privacy budget is spent. More "
                               "trees need a new calibration: call `xgboost.train` with "
                               "`xgb_model`.");
    // All trees of a round belong to one iteration: their joint sensitivity is that of one gradient.
    CHECK(!training_->busy && training_->updates % training_->plan.n_groups == 0)
        << "This private training failed and cannot go on: start a new one.";
    CHECK(!training_->data || training_->data == train)
        << "One private training reads one DMatrix; this is another one.";
    if (training_->plan.is_private) {
      CheckClaim(attributes, training_->plan.id);
    }
    training_->data = train;
  }

  bool UpdatePredictionCache(DMatrix const* p_fmat,
                             common::Span<HostDeviceVector<bst_node_t>> position,
                             linalg::MatrixView<float> out_preds) override {
    if (!training_ || training_->data.get() != p_fmat || !training_->last_tree ||
        out_preds.Size() == 0) {
      return false;
    }
    tree::UpdatePredictionCacheImpl(ctx_, training_->last_tree, position.front().ConstHostSpan(),
                                    out_preds);
    return true;
  }

 private:
  /** @brief State of a training in progress; gone when the booster is copied, saved or finished. */
  struct Training {
    Plan plan;
    std::unique_ptr<RandomSource> rng;    // null for the noise-free algorithm
    std::unique_ptr<RandomSource> structure;  // of random features and splits
    std::unique_ptr<RandomSource> coins;  // null where every round reads all rows
    std::unique_ptr<MaskedSums> masked;   // null where sums travel in the clear
    std::vector<std::uint16_t> parts;     // which round of the ensemble reads a row
    std::vector<std::uint8_t> sample;     // rows of this round, empty for all
    Ledger ledger;
    std::int64_t updates{0};  // one for each class of each round
    bool busy{false};
    std::shared_ptr<DMatrix> data;
    std::unique_ptr<CandidateRelease> candidates;
    std::unique_ptr<TreeGrower> grower;
    std::vector<PackedPair> gpair;
    std::vector<LeafShrinkage> shrinkage;  // of each class
    std::unique_ptr<SplitHistory> history;
    RegTree const* last_tree{nullptr};

    [[nodiscard]] std::int64_t MaxUpdates() const {
      return static_cast<std::int64_t>(plan.rounds) * plan.n_groups;
    }
  };

  /** @return Whether a new training was started; false for the plan that is running already. */
  bool Start(std::string const& plan_text) {
    if (training_ && plan_text == plan_text_) {
      return false;
    }
    CHECK(!training_) << "`dp_plan` cannot change in the middle of a private training.";
    CHECK(sealed_ledger_.empty() || plan_text != plan_text_)
        << "The noise of this `dp_plan` has been drawn and its budget is spent. More trees need a "
        << "new calibration: call `xgboost.train` with `xgb_model`.";
    auto training = std::make_unique<Training>();
    training->plan = ParsePlan(plan_text);
    training->shrinkage.resize(training->plan.n_groups);
    training->history = std::make_unique<SplitHistory>(training->plan);
    // Without noise nothing is hidden, and the same rows give the same model.
    auto key = training->plan.noise_free ? std::string(2 * sizeof(ChaChaKey), '0')
                                         : training->plan.test_key;
    if (!training->plan.noise_free) {
      training->rng = training->plan.masking.IsOn() ? MakeShareSource(key, kTrainingStream)
                                                    : MakeRandomSource(key, kTrainingStream);
    }
    if (training->plan.masking.IsOn()) {
      training->masked =
          std::make_unique<MaskedSums>(ctx_, training->plan.masking, training->rng.get());
    }
    training->structure = MakeRandomSource(key, kStructureStream);
    training->candidates =
        std::make_unique<CandidateRelease>(ctx_, training->plan, training->rng.get(),
                                           training->masked.get());
    if (training->plan.IsSampled() || training->plan.parts > 1) {
      // Every worker draws for its own rows.
      training->coins = MakeRandomSource(key, kSamplingStream + collective::GetRank());
    }
    training_ = std::move(training);
    plan_text_ = plan_text;
    sealed_ledger_.clear();
    return true;
  }

  void GrowTree(std::int64_t group, std::int64_t tree_idx, GradientSum const& total, RegTree* tree,
                std::vector<bst_node_t>* positions) {
    auto& training = *training_;
    auto const& plan = training.plan;
    monitor_.Start("Grow");
    auto features = FromRankZero(ctx_, [&] {
      auto list = FeaturesOfTree(plan, tree_idx, training.structure.get());
      return std::vector<std::int64_t>(list.cbegin(), list.cend());
    });
    auto leaves = training.grower->Grow(training.gpair, total, {features.cbegin(), features.cend()},
                                        plan.IsOblivious(tree_idx), group, *training.history, tree);
    monitor_.Stop("Grow");

    monitor_.Start("Leaves");
    auto round = tree_idx / plan.parallel_trees;
    std::vector<bst_node_t> ids;
    std::vector<GradientSum> exact;
    std::vector<ReleasedLeaf> released;
    for (auto const& leaf : leaves) {
      ids.push_back(leaf.nidx);
      exact.push_back(leaf.total);
      released.push_back({leaf.total, plan.masking.DrawnVariance(plan.histogram_sigma2) *
                                          static_cast<double>(leaf.noisy_cells)});
    }
    if (!plan.HasNoisySums()) {
      released =
          ReleaseLeaves(ctx_, plan, round, exact, training.rng.get(), training.masked.get());
    }
    auto sums = FinishTree(plan, ids, released, plan.IsOblivious(tree_idx),
                           &training.shrinkage.at(group), tree);
    if (plan.leaf.release != LeafRelease::kOutput) {
      training.history->Update(group, *tree, sums);
    }
    *positions = training.grower->LeafPositions();
    monitor_.Stop("Leaves");
  }

  /**
   * @brief Record what the round will release, then draw which rows it reads.
   *
   * Recorded before anything is drawn, for all trees of the round: a training that breaks off has
   * spent at most this.
   */
  void StartRound(std::int32_t round, std::size_t n_rows) {
    auto& training = *training_;
    auto const& plan = training.plan;
    if (training.rng) {
      RecordRound(plan, round, &training.ledger);
    }
    if (plan.IsSampled()) {
      DrawSample(training.coins.get(), plan.sampling_num, n_rows, &training.sample);
    } else if (plan.parts > 1) {
      if (round % plan.parts == 0) {
        DrawParts(training.coins.get(), plan.parts, plan.halving, n_rows, &training.parts);
      }
      training.sample.resize(n_rows);
      std::transform(training.parts.cbegin(), training.parts.cend(), training.sample.begin(),
                     [&](auto part) { return part == round % plan.parts; });
    }
  }

  [[nodiscard]] std::string LedgerText() const {
    Json out{Object{}};
    out["version"] = Integer{1};
    out["private"] = Boolean{training_->plan.is_private};
    out["noise"] = String{training_->plan.noise_free          ? "none"
                          : training_->plan.test_key.empty() ? "os"
                                                             : "fixed"};
    Json training{Object{}};
    training["complete"] = Boolean{training_->updates == training_->MaxUpdates()};
    training["events"] = training_->ledger.SaveEvents();
    out["trainings"] = Array{std::vector<Json>{training}};
    std::string text;
    Json::Dump(out, &text);
    return text;
  }

  std::string plan_text_;
  std::string sealed_ledger_;
  std::unique_ptr<Training> training_;
  common::Monitor monitor_;
};

XGBOOST_REGISTER_TREE_UPDATER(DpHistMaker, "grow_dp_histmaker")
    .describe("Grow differentially private trees on histograms.")
    .set_body([](Context const* ctx, ObjInfo const* task) { return new DpHistMaker{ctx, task}; });
}  // namespace xgboost::dp
