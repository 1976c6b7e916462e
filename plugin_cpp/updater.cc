/**
 * The private tree updater, `tree_method=dp_hist`: bounded integer gradients, candidates in some
 * rounds, private splits level by level, and noisy leaves.
 */
#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t
#include <memory>   // for unique_ptr, make_unique, shared_ptr
#include <string>   // for string
#include <utility>  // for move
#include <vector>   // for vector

#include "common/timer.h"  // for Monitor
#include "plugin_cpp/checks.h"  // for CheckFirstArgs, CheckLaterArgs, Find, CheckMatrix, CheckRows, CheckSums, TakeClaim
#include "plugin_cpp/grow/bins.h"                         // for BinRows
#include "plugin_cpp/grow/features.h"                     // for SelectFeatures
#include "plugin_cpp/grow/grower.h"                       // for TreeGrower
#include "plugin_cpp/guard.h"                             // for PrivateUpdater
#include "plugin_cpp/mechanisms/candidates/candidates.h"  // for Candidates
#include "plugin_cpp/mechanisms/correction.h"             // for MeanCorrection, SumResiduals
#include "plugin_cpp/mechanisms/leaves/leaf_values.h"     // for FinishTree, LeafShrinkage
#include "plugin_cpp/mechanisms/leaves/leaves.h"          // for ReleaseLeaves, SpreadPersons
#include "plugin_cpp/mechanisms/sampling.h"               // for RowSample
#include "plugin_cpp/mechanisms/splits/history.h"         // for SplitHistory
#include "plugin_cpp/plan/plan.h"  // for CorrectionEvent, kPlanKey, kStateKey, Plan, ParsePlan
#include "plugin_cpp/release/digests.h"  // for TreeDigest
#include "plugin_cpp/release/ledger.h"   // for kLedgerAttribute
#include "plugin_cpp/release/release.h"  // for Release
#include "plugin_cpp/rows/gradient.h"    // for QuantiseGradients, RoundLoss
#include "plugin_cpp/rows/persons.h"     // for Persons
#include "plugin_cpp/upstream.h"         // for PlainUpdater
#include "tree/param.h"                  // for TrainParam
#include "xgboost/gradient.h"            // for GradientContainer
#include "xgboost/host_device_vector.h"  // for HostDeviceVector
#include "xgboost/json.h"                // for Json
#include "xgboost/logging.h"             // for CHECK
#include "xgboost/task.h"                // for ObjInfo

namespace xgboost::dp {
DMLC_REGISTRY_FILE_TAG(updater_dp);

class DpHistMaker : public PlainUpdater, public PrivateUpdater {
 public:
  explicit DpHistMaker(Context const* ctx, ObjInfo const*) : PlainUpdater{ctx} {
    monitor_.Init("DpHistMaker");
  }

  void Configure(Args const& args) override {
    auto plan = Find(args, kPlanKey), state = Find(args, kStateKey);
    if (plan && this->Start(*plan, state ? *state : "{}")) {
      CheckFirstArgs(args, training_->plan);
    } else if (training_) {
      CHECK(!state || *state == state_text_)
          << "`dp_state` cannot change during a private training.";
      CheckLaterArgs(args, training_->plan);
    }
  }

  void LoadConfig(Json const& in) override {
    // A copy, a pickle or the booster after `xgboost.train`. It predicts and keeps its ledger, but
    // cannot grow trees without a new plan.
    training_.reset();
    auto const& config = get<Object const>(in);
    auto const& param = get<Object const>(config.at("dp_train_param"));
    plan_text_ = get<String const>(param.at(kPlanKey));
    state_text_ = get<String const>(param.at(kStateKey));
    auto it = config.find("dp_ledger");
    sealed_ledger_ = it == config.cend() ? std::string{} : get<String const>(it->second);
  }

  void SaveConfig(Json* p_out) const override {
    auto& out = *p_out;
    out["dp_train_param"] = Object{};
    out["dp_train_param"][kPlanKey] = String{plan_text_};
    out["dp_train_param"][kStateKey] = String{state_text_};
    if (training_) {
      out["dp_narrow"] = training_->candidates.Narrow();
    }
    out["dp_ledger"] = String{training_ ? this->LedgerText() : sealed_ledger_};
    // LoadConfig cannot set it: a live record names the trees that this updater has grown.
    out["dp_live"] = Boolean{training_ != nullptr};
  }

  [[nodiscard]] char const* Name() const override { return "grow_dp_histmaker"; }

  void Update(tree::TrainParam const* param, GradientContainer* in_gpair, DMatrix* p_fmat,
              common::Span<HostDeviceVector<bst_node_t>> out_position,
              std::vector<RegTree*> const& trees) override {
    this->CheckUpdate(*param, *in_gpair, p_fmat, trees);
    auto& training = *training_;
    auto const& plan = training.plan;
    // After an exception, draws may be incomplete: the flag stays set, and no more trees are grown.
    training.busy = true;
    if (!training.grower) {
      this->Begin(p_fmat);
    }
    // The learner calls once per class; a round is complete with its last class.
    auto class_idx = static_cast<std::size_t>(training.updates % plan.num_class);
    auto round = static_cast<std::int32_t>(training.updates / plan.num_class);
    ++training.updates;
    if (class_idx == 0) {
      this->BeginRound(round, p_fmat);
    }
    for (std::size_t i = 0; i < trees.size(); ++i) {
      // Trees of one class, counted over all rounds.
      auto tree_idx =
          static_cast<std::int64_t>(round) * plan.parallel_trees + static_cast<std::int64_t>(i);
      this->GrowTree(class_idx, tree_idx, trees[i], &out_position[i].HostVector());
    }
    if (plan.correction.is_on && round + 1 == plan.rounds) {
      this->CorrectMean(p_fmat->Info(), in_gpair->Grad()->HostView(),
                        out_position.back().HostVector(), trees.back());
    }
    for (auto const* tree : trees) {
      training.names.emplace_back(TreeDigest(*tree));
    }
    training.last_tree = trees.back();
    training.busy = false;
    if (training.updates == training.MaxUpdates()) {
      // No later step reads rows: free their memory.
      training.grower.reset();
      training.gradients.clear();
      training.person_rows.clear();
    }
  }

  void BeforeIteration(Attributes const& attributes,
                       std::shared_ptr<DMatrix> const& train) override {
    CHECK(training_) << (sealed_ledger_.empty()
                             ? "`dp_hist` has no calibrated plan. Call `xgboost.train` with "
                               "`dp_epsilon` and `dp_delta`."
                             : "This training is finished and its privacy budget is spent. To add "
                               "trees, call `xgboost.train` with `xgb_model`.");
    // All trees of a round belong to one iteration: their joint sensitivity is the sensitivity of
    // one gradient.
    CHECK(!training_->busy && training_->updates % training_->plan.num_class == 0)
        << "This private training has failed and cannot continue. Start a new one.";
    CHECK(!training_->data || training_->data == train)
        << "This DMatrix is not the one that the private training started with. Pass the same "
           "DMatrix in every round.";
    auto it = attributes.find(kLedgerAttribute);
    if (training_->claim.empty()) {
      training_->claim = TakeClaim(attributes, training_->plan.known, plan_text_, train.get());
    }
    CHECK(it != attributes.cend() && it->second == training_->claim)
        << "The booster's privacy ledger was changed during its training. Start a new training, "
           "and do not change the attribute `dp_ledger`.";
    training_->data = train;
  }

  [[nodiscard]] bool TakeMargins(HostDeviceVector<float> const& margins,
                                 GradientContainer* gpair) override {
    CHECK(training_ && !training_->busy);
    auto const& plan = training_->plan;
    training_->gpair = gpair;
    training_->margins = &margins;
    // The booster reads the shape, even if there are no gradients.
    gpair->gpair.Reshape(training_->data->Info().num_row_, plan.num_class);
    return !plan.loss && !plan.IsLogistic();
  }

 protected:
  [[nodiscard]] RegTree const* LastTree(DMatrix const* p_fmat) const override {
    return training_ && training_->data.get() == p_fmat ? training_->last_tree : nullptr;
  }

 private:
  struct Leaves {
    std::vector<NodeSum> released;
    std::vector<double> weights;
  };
  /** @brief State of a training in progress. Copies and saved boosters do not have it. */
  struct Training {
    Plan plan;
    std::string key;  // of all random sources; empty for fresh keys
    Release release;
    RowSample sample;
    Candidates candidates;
    SplitHistory history;
    std::vector<LeafShrinkage> shrinkage;     // of each class
    LeafShrinkage shared_shrinkage;           // of rounds whose outputs share leaves
    std::vector<Leaves> first_leaves;         // of each parallel tree of the last class
    std::unique_ptr<RandomSource> structure;  // of random features and splits
    std::string claim;                        // the ledger whose claim this training has taken
    std::vector<std::string> names;           // of the trees that it has grown
    std::int64_t updates{0};                  // one for each class of each round
    bool busy{false};
    std::shared_ptr<DMatrix> data;
    std::shared_ptr<Persons const> persons;
    std::unique_ptr<TreeGrower> grower;
    GradientContainer const* gpair{nullptr};          // of all classes, until they are quantised
    HostDeviceVector<float> const* margins{nullptr};  // of these gradients
    RoundLoss loss;                                   // of this round
    std::vector<ClassGradients> gradients;
    PersonRows person_rows;                // before the bound of persons
    std::vector<TreeGrower::Grown> grown;  // the parallel trees whose splits are shared, or one
    RegTree const* last_tree{nullptr};

    Training(Context const* ctx, Plan parsed)
        : plan{std::move(parsed)},
          // Without noise, the same rows give the same model.
          key{plan.noise_free ? std::string(2 * sizeof(ChaChaKey), '0') : plan.known.key},
          release{ctx, plan.noise_free, key, plan.masking, kTrainingStream, plan.IsPersonLevel()},
          sample{plan, key},
          candidates{{ctx, plan, &release}},
          history{plan},
          shrinkage(plan.num_class),
          first_leaves(plan.parallel_trees),
          grown(plan.SharesSplits() ? plan.parallel_trees : 1) {}

    [[nodiscard]] std::int64_t MaxUpdates() const {
      return static_cast<std::int64_t>(plan.rounds) * plan.num_class;
    }
  };

  /**
   * @brief Start the training of a plan.
   *
   * @return Whether it is new; false for the plan of the current training.
   */
  bool Start(std::string const& plan_text, std::string const& state_text) {
    if (training_ && plan_text == plan_text_ && state_text == state_text_) {
      return false;
    }
    CHECK(!training_) << "`dp_plan` and `dp_state` cannot change during a private training. Call "
                         "`xgboost.train` again.";
    training_ = std::make_unique<Training>(ctx_, ParsePlan(plan_text, state_text));
    plan_text_ = plan_text;
    state_text_ = state_text;
    sealed_ledger_.clear();
    return true;
  }

  void CheckUpdate(tree::TrainParam const& param, GradientContainer const& gpair, DMatrix* p_fmat,
                   std::vector<RegTree*> const& trees) const {
    CHECK(training_ && training_->data.get() == p_fmat && !training_->busy);
    auto& training = *training_;
    auto const& plan = training.plan;
    CHECK_EQ(trees.size(), static_cast<std::size_t>(plan.parallel_trees))
        << "The plan was calibrated for another `num_parallel_tree`. Pass it to `xgboost.train`.";
    CHECK(!trees.front()->IsMultiTarget() && !gpair.HasValueGrad())
        << "`multi_strategy=multi_output_tree` is not available with `dp_hist`. Remove it.";
    CHECK_LT(training.updates, training.MaxUpdates())
        << "All calibrated trees have been grown and the privacy budget is spent. To add trees, "
           "call `xgboost.train` with `xgb_model`.";
    // Not CHECK_EQ, which would print the number of rows.
    CHECK(gpair.Grad()->Shape(0) == p_fmat->Info().num_row_);
    CheckTrainParam(param);
    auto persons = Persons::Of(*p_fmat);  // null if the privacy unit is a row
    CheckMatrix(p_fmat, plan, persons.get());
    CHECK(!training.grower || persons == training.persons)
        << "The privacy ids have changed during a private training. Set the ids once, before the "
           "training.";
    training.persons = persons;
  }

  void Begin(DMatrix* p_fmat) {
    auto& training = *training_;
    auto const& plan = training.plan;
    monitor_.Start("Checks");
    Persons::CheckKept(*p_fmat, plan.id, training.persons);
    training.release.CheckAgreement(plan_text_ + state_text_);
    training.release.OpenPads(plan.id, true);
    training.structure = training.release.SharedSource(training.key, kStructureStream);
    CheckSums(ctx_, plan, p_fmat->Info().num_row_);
    CheckRows(ctx_, plan, p_fmat);
    monitor_.Stop("Checks");
  }

  /** @brief Quantise the gradients of all classes, and release new candidates if due. */
  void BeginRound(std::int32_t round, DMatrix* p_fmat) {
    auto& training = *training_;
    auto const& plan = training.plan;
    auto const& info = p_fmat->Info();
    auto const* persons = training.persons.get();
    auto const& rows = training.sample.Draw(round, info.num_row_, persons, &training.release);
    monitor_.Start("Gradients");
    CHECK(training.gpair && training.margins);
    training.loss = {plan.loss.get(), plan.IsLogistic(), training.margins->ConstHostSpan(), round};
    QuantiseGradients(ctx_, plan.row_bound, info, persons, training.loss,
                      training.gpair->Grad()->HostView(), rows,
                      plan.leaf.spread ? &training.person_rows : nullptr, &training.gradients);
    CHECK_EQ(training.gradients.size(), static_cast<std::size_t>(plan.num_class));
    training.gpair = nullptr;
    training.margins = nullptr;
    monitor_.Stop("Gradients");
    if (round > 0 && !plan.ReleasesCandidates(round)) {
      return;
    }
    monitor_.Start("Candidates");
    auto cuts = training.candidates.MakeCuts({p_fmat, persons, training.gradients.front().pairs});
    monitor_.Stop("Candidates");
    monitor_.Start("Bins");
    training.grower.reset();  // frees the last bins first
    auto pages = BinRows(ctx_, cuts, p_fmat);
    training.grower = std::make_unique<TreeGrower>(ctx_, plan, std::move(cuts), std::move(pages),
                                                   training.structure.get(), &training.release);
    monitor_.Stop("Bins");
  }

  void GrowTree(std::size_t class_idx, std::int64_t tree_idx, RegTree* tree,
                std::vector<bst_node_t>* positions) {
    auto& training = *training_;
    auto const& plan = training.plan;
    monitor_.Start("Grow");
    bool shared = plan.SharesSplits();
    auto& grown = training.grown.at(shared ? tree_idx % plan.parallel_trees : 0);
    if (plan.SplitClass(class_idx) == class_idx) {
      TreeSpec spec{SelectFeatures(plan, tree_idx, training.structure.get()),
                    plan.IsOblivious(tree_idx), class_idx, static_cast<std::size_t>(tree_idx),
                    &training.history};
      common::Span<ClassGradients const> gradients{training.gradients};
      grown =
          training.grower->Grow(shared ? gradients : gradients.subspan(class_idx, 1), spec, tree);
      if (plan.leaf.spread) {
        SpreadPersons(ctx_, plan, *training.persons, training.person_rows, training.gradients,
                      grown.leaves, grown.positions, training.release, &grown.sums);
      }
    } else {
      training.grower->Repeat(grown, tree);
    }
    if (!shared || class_idx + 1 == static_cast<std::size_t>(plan.num_class)) {
      positions->swap(grown.positions);
    } else {
      *positions = grown.positions;
    }
    monitor_.Stop("Grow");

    monitor_.Start("Leaves");
    auto round = static_cast<std::int32_t>(tree_idx / plan.parallel_trees);
    auto& first = training.first_leaves.at(tree_idx % plan.parallel_trees);
    bool repeats = plan.SharesLeaves(round) && class_idx > 0;
    // Rows have no gradients for an output that repeats the leaves of the first one. The noise is
    // still drawn, so the ledger does not change.
    TreeTilt none;
    auto& shrinkage =
        plan.SharesLeaves(round) ? training.shared_shrinkage : training.shrinkage.at(class_idx);
    auto released = ReleaseLeaves(plan, {round, class_idx}, grown.sums.at(shared ? class_idx : 0),
                                  repeats ? &none : &shrinkage.tilt, &training.release);
    if (!repeats) {
      auto weights = LeafWeights(plan, plan.IsOblivious(tree_idx), released, &shrinkage);
      first = {std::move(released), std::move(weights)};
    }
    auto sums =
        FinishTree(first.weights, plan, {round, class_idx}, grown.leaves, first.released, tree);
    if (plan.leaf.noise != LeafNoise::kOutput && !repeats) {
      training.history.Update(class_idx, *tree, sums);
    }
    monitor_.Stop("Leaves");
  }

  void CorrectMean(MetaInfo const& info, linalg::MatrixView<GradientPair const> gpair,
                   std::vector<bst_node_t> const& position, RegTree* tree) {
    auto& training = *training_;
    auto const& plan = training.plan;
    MeanCorrection correction{plan};
    for (std::int32_t i = 0; i < CorrectionPlan::kTimes; ++i) {
      auto residuals = SumResiduals(ctx_, plan.row_bound, info, training.persons.get(),
                                    training.loss, gpair, position, *tree);
      correction.Shift(training.release.AddNoise(CorrectionEvent(plan), residuals), tree);
    }
  }

  [[nodiscard]] std::string LedgerText() const {
    Json out{Object{}};
    out["version"] = Integer{1};
    auto const& known = training_->plan.known;
    out["private"] = Boolean{known.IsPrivate()};
    out["noise"] = String{known.Source()};
    Json training{Object{}};
    training["complete"] = Boolean{training_->updates == training_->MaxUpdates()};
    training["events"] = training_->release.SaveEvents();
    Array names;
    for (auto const& name : training_->names) {
      names.GetArray().emplace_back(String{name});
    }
    training["trees"] = std::move(names);
    out["trainings"] = Array{std::vector<Json>{training}};
    std::string text;
    Json::Dump(out, &text);
    return text;
  }

  std::string plan_text_;
  std::string state_text_;
  std::string sealed_ledger_;
  std::unique_ptr<Training> training_;
  common::Monitor monitor_;
};

XGBOOST_REGISTER_TREE_UPDATER(DpHistMaker, "grow_dp_histmaker")
    .describe("Grow differentially private trees on histograms.")
    .set_body([](Context const* ctx, ObjInfo const* task) { return new DpHistMaker{ctx, task}; });
}  // namespace xgboost::dp
