"""The ``dp_*`` rows of the table of parameters: XGBoost has none of them."""

from __future__ import annotations

from ..accounting import ACCOUNTANTS
from ..parameters.parameter import FREE, PUBLIC, SPENDS, Parameter
from ..parameters.parse import Choice, FileName, Flag, Number, Whole
from ..presets import PRESETS
from . import defaults, program, readers

__all__ = ["OWN_ROWS"]

# fmt: off
OWN_ROWS = (
    Parameter("dp_epsilon",
              "the privacy budget of this training",
              Number(0, open_low=True, finite=False), defaults.epsilon, SPENDS, "guarantee",
              unit="nats", values="> 0; inf trains without noise and marks the model non-private",
              shown="none, must be given", recorded=False),
    Parameter("dp_delta",
              "the probability with which the bound e^epsilon may fail",
              readers.delta, defaults.delta, SPENDS, "guarantee", unit="probability",
              values="0 < delta < 1, a constant chosen without the data; 0 with "
              "dp_accountant='pure'", shown="none, must be given ('pure': 0)", recorded=False),
    Parameter("dp_group",
              "how many rows of one person dp_epsilon covers together. A single row then has a "
              "smaller epsilon. With dp_privacy_id it counts persons, such as those of a "
              "household",
              Whole(1, 1 << 20), 1, SPENDS, "neighbours", unit="rows or persons"),
    Parameter("dp_preset",
              "a published system. It sets the components below; keys that you give override it",
              Choice(tuple(PRESETS)), "default", PUBLIC, "presets",
              values="a name of xgb_dp.presets.PRESETS"),
    Parameter("dp_accountant",
              "the accountant that certifies dp_epsilon. The report can recompute epsilon with "
              "any of them",
              Choice(tuple(ACCOUNTANTS)), "exact", SPENDS, "accounting",
              shown="'exact', the tightest"),
    Parameter("dp_budget_shares",
              "how mu^2, the budget in Gaussian terms, is divided among the releases",
              readers.shares, defaults.shares, SPENDS, "accounting",
              unit="fractions that sum to 1",
              values="mapping with keys candidates, base_score, columns, correction, splits, "
              "leaves",
              shown="columns 0.5 with dp_start='columns'; candidates 0.1 of the others; base_score "
              "0.009 (regression without dp_mean_correction 0.027); correction 0.05; of the rest "
              "0.3 splits and 0.7 leaves"),
    Parameter("dp_privacy_id",
              "who each row belongs to. The unit of privacy is then a person: neighbours differ "
              "by all rows of one person",
              readers.privacy_id, False, PUBLIC,
              "neighbours", unit="id",
              values="one id for each row: whole numbers, texts, bytes or UUIDs; none is missing, "
              "and none is stored. Where xgb_dp makes the matrix, the name of a column",
              shown="none: the unit of privacy is a row", recorded=False),
    Parameter("dp_rows_per_person",
              "how many rows a person counts as at most. The bound of a person is that of so many "
              "rows, and the noise grows with it",
              Number(1, 1024), 1.0, PUBLIC, "sensitivity", unit="rows",
              recorded=False),
    Parameter("dp_gradient_bound",
              "the bound C of the gradient of one row",
              Number(1e-6, 1e6),
              defaults.gradient_bound, PUBLIC, "sensitivity",
              unit="gradient of the objective; regression: half widths of dp_target_bounds",
              shown="'prediction' and 'row_weight' 0.5, several classes with 'prediction' 1; "
              "'clip' 1, regression 0.3; 'filter' 1"),
    Parameter("dp_gradient_clip",
              "how a row is bounded. 'prediction' scales its gradient and Hessian by a factor of "
              "the prediction, which does not bias probabilities; 'row_weight' scales by the norm "
              "of the row; 'clip' clips the gradient alone; 'filter' leaves rows beyond the bound "
              "out of a round",
              Choice(("prediction", "row_weight", "clip", "filter")), defaults.gradient_clip,
              PUBLIC, "sensitivity", shown="'prediction'; regression and dp_leaf='gradient' "
              "'clip'"),
    Parameter("dp_hessian_weight",
              "the weight r of the second derivative in the norm sqrt(g^2 + r h^2)",
              Number(1e-12, 1e6), defaults.hessian_weight, PUBLIC, "sensitivity",
              shown="'prediction' 0.25; 'row_weight' 1, multi-class 0.25; regression and "
              "dp_leaf='gradient' (0.25 C / dp_max_weight)^2"),
    Parameter("dp_max_weight",
              "the largest row weight. Heavier rows count as this. With "
              "dp_gradient_clip='prediction' weights keep their ratios up to it, otherwise up to "
              "1",
              Number(1e-6, 1e6), None, PUBLIC, "sensitivity", unit="row weight",
              shown="binary: none needed; else 1, and a heavier row is refused", recorded=False),
    Parameter("dp_base_margin",
              "declares that every row brings a base_margin, which replaces the intercept",
              Flag(), False, PUBLIC, "guarantee",
              shown="False: a row with margins is refused", plan="base_margin"),
    Parameter("dp_exposure_bounds", "range of exp(base_margin), such as the exposures of policies, "
              "for the released start of count:poisson, reg:gamma and reg:tweedie; what is beyond "
              "counts as its end there", readers.exposure_bounds, None, PUBLIC, "sensitivity",
              unit="exposure", values="(low, high) within 1e-12 and 1e12",
              shown="none, must be given with dp_base_margin for these objectives",
              recorded=False),
    Parameter("dp_n_public",
              "the number of rows, if it is public; with dp_privacy_id the number of persons. "
              "Used for the intercept and dp_local",
              Whole(1, 1 << 40), None, PUBLIC, "guarantee", unit="rows", values="int >= 1",
              shown="unset: the number of rows is private", plan="n_public", recorded=False),
    Parameter("dp_target_bounds",
              "range of the regression target, or of each of several; labels beyond are clamped "
              "(those beyond a million widths lose precision, and count as any label)",
              readers.target_bounds, defaults.target_bounds, PUBLIC, "parameters", unit="label",
              values="(low, high), low < high, within -1e30 and 1e30; reg:squarederror with "
              "several columns of labels: one pair for all, or a list of one for each",
              shown="none, must be given for regression", recorded=False),
    Parameter("dp_candidates",
              "where private split candidates come from: a tree of noisy counts over all floats, "
              "or noisy histograms on dp_feature_bounds, cut at equal mass or refined round by "
              "round",
              Choice(("quantile_tree", "histogram", "adaptive")), "quantile_tree", SPENDS,
              "candidates", plan="candidates.kind"),
    Parameter("dp_candidate_rounds",
              "in how many rounds, from the first one on, candidates are released",
              readers.candidate_rounds, defaults.candidate_rounds, SPENDS, "candidates",
              unit="rounds", values="int >= 1",
              shown="1; 'adaptive' 5; tree_method='dp_approx' all", plan="candidates.rounds"),
    Parameter("dp_candidate_weight",
              "what a row adds to the counts of candidates: 1, or its Hessian",
              Choice(("count", "hessian")),
              defaults.candidate_weight, PUBLIC, "candidates",
              shown="'count'; 'adaptive' and tree_method='dp_approx' 'hessian'"),
    Parameter("dp_candidate_noise",
              "the noise of the counts of candidates",
              Choice(("gaussian", "laplace")), "gaussian",
              SPENDS, "candidates"),
    Parameter("dp_candidate_cells",
              "the number of cells of the public grid under noisy histograms",
              Whole(2, 65536), defaults.candidate_cells, PUBLIC, "candidates", unit="cells",
              shown="'histogram' 256; 'adaptive' max_bin"),
    Parameter("dp_feature_bounds",
              "public ranges of features. An even or geometric grid of max_bin bins replaces the "
              "private candidates, or lies under the noisy histograms",
              readers.by_column, {}, PUBLIC,
              "candidates", unit="feature",
              values="{name or index: (low, high) or (low, high, 'log')}",
              shown="unset: candidates are released privately", recorded=False),
    Parameter("dp_feature_cuts",
              "public split points of features",
              readers.by_column, {}, PUBLIC,
              "candidates", unit="feature", values="{name or index: list of finite numbers}",
              shown="unset", recorded=False),
    Parameter("dp_categories",
              "the categories of each categorical feature",
              readers.by_column, {}, PUBLIC,
              "parameters", unit="categories",
              values="{name or index: int K, or the list of names in the order of the data "
              "frame's dictionary}", shown="none, must be given for each categorical feature",
              recorded=False),
    Parameter("dp_classes",
              "the classes",
              readers.classes, None, PUBLIC, "parameters",
              unit="labels", values="int K >= 2, or the list 0..K-1",
              shown="binary: 2; XGBClassifier: must be given", recorded=False),
    Parameter("dp_split",
              "choice of splits: the exponential mechanism; a random feature and cut, which "
              "reads no data and costs nothing; the best of one random cut for each feature, or "
              "of all, on noisy sums, which give the leaves too; none: each round is a tree of "
              "every feature alone, on the same gradients; or those of stock trees that were grown "
              "on dp_public_data, which cost nothing",
              Choice(("exponential", "random", "partial", "histogram", "additive", "public")),
              "exponential", SPENDS,
              "splits", plan="split"),
    Parameter("dp_start",
              "what the trees start from: the intercept; or noisy sums of the cells above 0 of "
              "each class in each column, released once. The first trees then add up what each "
              "column says of the label. With dp_features_per_tree the others are offered the "
              "columns that say most, instead of random ones",
              Choice(("intercept", "columns")), "intercept", SPENDS, "sensitivity",
              shown="'intercept'; open rounds: follows the cells"),
    Parameter("dp_leaf",
              "how a leaf gets its value: by a Newton step, or as a mean gradient, in which every "
              "row counts 1 instead of its Hessian",
              Choice(("newton", "gradient")), "newton", PUBLIC, "leaves"),
    Parameter("dp_leaf_noise",
              "what gets the noise in a leaf: its sums (Gaussian or Laplace), or its value "
              "(Laplace). With 'output' min_child_weight is a floor in the denominator",
              Choice(("gaussian", "laplace", "output")), "gaussian", SPENDS, "leaves",
              plan="leaf.noise"),
    Parameter("dp_geometric_clip",
              "clips the values of round t to (1 - eta)^t gradient bounds",
              Flag(), False, PUBLIC, "leaves", values="bool; with dp_leaf_noise='output'",
              plan="leaf.geometric_clip"),
    Parameter("dp_eta_start",
              "the learning rate of the first round, as a share of eta. It rises to eta by equal "
              "steps from round to round",
              Number(1e-3, 1), 1.0, FREE, "leaves", unit="share of eta",
              shown="1; open rounds of quantiles: follows the rows, unless eta is given",
              plan="leaf.eta_start"),
    Parameter("dp_ensemble",
              "how many rounds form one ensemble. The rounds of an ensemble read disjoint random "
              "parts of the rows, so together they cost one round, and less with the exact "
              "accountant, since nobody knows the part of a row",
              Whole(1, 1 << 16), 1, SPENDS, "sampling", unit="rounds",
              shown="1: every round reads all rows", plan="ensemble"),
    Parameter("dp_ensemble_halving",
              "whether each round of an ensemble takes half of the rows that are left",
              Flag(), False, PUBLIC, "sampling", shown="False: equal parts",
              plan="ensemble_halving"),
    Parameter("dp_local",
              "adds noise to the report of every row instead of to sums. dp_epsilon is then that "
              "of one report",
              Flag(), False, SPENDS, "accounting",
              values="bool; with random splits and dp_n_public"),
    Parameter("dp_features_per_tree",
              "the number of features that a tree may use",
              readers.features_per_tree, defaults.features_per_tree, PUBLIC, "splits",
              unit="features", values="int >= 1", shown="all (or colsample_bytree)",
              plan="features_per_tree"),
    Parameter("dp_feature_order",
              "whether trees take their features at random or in turn",
              Choice(("random", "cyclic")), "random", PUBLIC, "splits"),
    Parameter("dp_score",
              "the utility of a split",
              Choice(("l1", "newton", "gain")), "l1", PUBLIC,
              "splits", plan="score"),
    Parameter("dp_score_clip",
              "the largest leaf weight tau in the score 'newton'",
              Number(0, 1e6, open_low=True), 0.5, PUBLIC, "splits", unit="leaf weight",
              values="> 0", plan="score_clip"),
    Parameter("dp_tree_shape",
              "whether a split is chosen for each node, for each level, or both in turn",
              Choice(("alternate", "per_node", "oblivious")),
              defaults.of_trees("dp_tree_shape"), PUBLIC, "splits",
              shown="open rounds: follows the rows; else 'alternate', classification with "
              "dp_epsilon / dp_group >= 1 'oblivious'", plan="shape"),
    Parameter("dp_class_trees",
              "how trees of several classes or targets are split: one choice for all trees of a "
              "round, by the norm over the classes, or one choice for each tree",
              Choice(("joint", "per_class")),
              defaults.class_trees, SPENDS, "splits",
              shown="several classes with dp_split='exponential', dp_score='l1' and "
              "dp_gradient_clip='prediction' 'joint'; else, and in other presets, 'per_class'",
              plan="class_trees"),
    Parameter("dp_split_levels",
              "how many levels of a tree one selection fills. It picks a feature and a partition "
              "of its values into 2^levels parts",
              Whole(1, 4), defaults.split_levels, SPENDS,
              "splits", unit="levels", shown="2; 1 with dp_no_split or another dp_split",
              plan="split_levels"),
    Parameter("dp_split_candidates",
              "how many random partitions of each feature such a selection compares",
              Whole(1, 4096),
              16, PUBLIC, "splits", unit="candidates", plan="split_candidates"),
    Parameter("dp_split_prior",
              "how much the released gains of earlier trees count in the choice of features",
              Number(0, 0.999), defaults.split_prior, FREE, "splits",
              shown="0.5; 0 with another dp_split", plan="split_prior"),
    Parameter("dp_no_split",
              "lets the mechanism choose not to split. gamma is the bonus of that choice",
              Flag(),
              False, PUBLIC, "splits", shown="False: trees are complete to max_depth",
              plan="no_split"),
    Parameter("dp_shrinkage",
              "shrinks leaves whose signal is smaller than their noise and the chance of the rows",
              readers.shrinkage, defaults.shrinkage, FREE, "leaves", values="bool",
              shown="True; False with dp_leaf_noise='output', which releases no sums",
              plan="leaf.shrinkage"),
    Parameter("dp_shrinkage_strata",
              "shrinks the effects of a tree's selections and their interactions each by its own "
              "estimate, in complete trees of depth 8 or less, instead of all leaves by one",
              Flag(), True, FREE, "leaves", plan="leaf.strata"),
    Parameter("dp_mean_correction",
              "releases the mean residual after the last tree and shifts the tree by it, twice. "
              "Without it the clip pulls the mean of a skewed target down",
              Flag(), defaults.mean_correction,
              SPENDS, "leaves", values="bool; regression with sums of all rows",
              shown="False; regression with dp_epsilon / dp_group >= 1, dp_preset='default' and "
              "without dp_budget_shares True", plan="correction.on"),
    Parameter("dp_candidate_levels",
              "the number of levels of the tree of counts from which candidates are read",
              Whole(2, 17), 17, PUBLIC, "candidates", unit="levels", plan="candidates.levels"),
    Parameter("dp_secure_sum",
              "workers add shares of the noise to their own sums and mask them, so that no worker "
              "sees the sums of another or of all. It excludes the exponential mechanism, Laplace "
              "noise and subsample",
              Flag(), False, PUBLIC, "masked-sums",
              values="bool; with at least two workers",
              shown="False: workers trust each other", recorded=False),
    Parameter("dp_secure_colluders",
              "how many workers may put together what they know. The noise of the others alone "
              "then makes dp_epsilon",
              readers.colluders, 1, SPENDS, "masked-sums", unit="workers",
              values="0 (nobody who trains is curious) to workers - 1",
              shown="1: each on its own", recorded=False),
    Parameter("dp_secure_key",
              "the private key with which this worker proves to the others who it is. ssh-keygen "
              "-t ed25519 makes it. It is stored nowhere else",
              FileName(), None, PUBLIC,
              "masked-sums", unit="file", shown="none; needed with dp_secure_sum", recorded=False),
    Parameter("dp_secure_parties",
              "the public keys of all workers that may take part, one in each line, as ssh-keygen "
              "writes them",
              FileName(), None, PUBLIC, "masked-sums", unit="file",
              shown="none; needed with dp_secure_sum", recorded=False),
    Parameter("dp_public_evals",
              "asserts that every set in evals is public, so that exact metrics and early "
              "stopping on it are allowed",
              Flag(), False, PUBLIC, "guarantee", recorded=False),
    Parameter("dp_public_data",
              "public rows with the columns of the training data: their quantiles are the "
              "candidates of columns that nothing is declared of, at no cost",
              readers.public_data, False, PUBLIC, "howto/public",
              values="an xgboost.DMatrix with labels, or a pair (X, y)",
              shown="none: candidates are released privately", recorded=False),
    Parameter("dp_public_model",
              "asserts that xgb_model was made without any private row, such as a model of "
              "another year or a published score. Private trees are added to it. It costs nothing",
              Flag(), False, PUBLIC, "howto/public",
              shown="False: a model without a ledger is refused", recorded=False),
    Parameter("dp_objective",
              "a loss of your own: a function of one row, which is called once with symbols and "
              "compiled", program.own_objective, None, PUBLIC, "howto/objectives",
              values="callable of (prediction, label, weight) that returns (gradient, Hessian), in "
              "arithmetic and calls of NumPy", shown="none", recorded=False),
)
# fmt: on
