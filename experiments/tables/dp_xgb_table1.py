"""Table 1 of the DP-XGB paper: test AUC at epsilon 1, delta 1/n, seven models.

The paper shows the best of 14 numbers of trees and 5 depths for each model and data set, chosen on
test scores. Here each model has six settings and is shown by its best one too; `default` has one
setting. The editions follow the row counts of the paper's table 5.
"""

from dataclasses import replace

from ..core import DEFAULT, STOCK, System, Table
from ..datasets import (
    ADULT,
    BANK,
    CALIFORNIA,
    COVTYPE_25K,
    CREDIT1,
    CREDIT2,
    ELECTRICITY,
    EYE,
    HIGGS_11K,
    HOUSE,
    NOMAO,
    POL,
    Dataset,
)

# 2 x 35,545 rows: both of the larger classes, cut to the same size; seven of the eight counts.
DIABETES = Dataset(
    "Diabetes130US",
    "diabetes130us",
    classes=(0.0, 1.0),
    positive=(1.0,),
    balance=True,
    keep=(
        "time_in_hospital",
        "num_lab_procedures",
        "num_procedures",
        "num_medications",
        "number_emergency",
        "number_inpatient",
        "number_diagnoses",
    ),
)
# 2 x 19,237 rows without the day of the week.
ELECTRICITY_7 = replace(ELECTRICITY, drop=("day",), balance=True)
DATASETS = (
    replace(ADULT, train_only=True, complete_rows=True, code_all=True),
    BANK,
    CALIFORNIA,
    replace(CREDIT1, complete_rows=True),
    CREDIT2,
    DIABETES,
    ELECTRICITY_7,
    EYE,
    HOUSE,
    NOMAO,
    POL,
    HIGGS_11K,
    COVTYPE_25K,
    Dataset("APS failure", "aps_failure", openml=41138),
    Dataset("Bioresponse", "bioresponse", openml=45019),
    Dataset("Jannis", "jannis", openml=45021),
    Dataset("MagicTelescope", "magic_telescope", openml=44125),
    Dataset("MiniBooNE", "miniboone", openml=44128),
)
PUBLISHED = {
    "dp_xgb": "XGB",
    "dp_xgb_cyc": "XGB_cyc",
    "dp_xgb_ada": "XGB_ada",
    "dp_tr": "TR",
    "dp_tr_cyc": "TR_cyc",
    "dp_tr_ada": "TR_ada",
    "dp_tr_ada_cyc": "TR_ada_cyc",
}
DEPTHS = (2, 4)


def setting(name: str, preset: str, trees: int, depth: int) -> System:
    """A model of the paper with a number of trees and a depth."""
    return System(
        name,
        preset=preset,
        params={"max_depth": depth, "lambda": 1.0},
        rounds=trees,
        inputs="grid",
        reproduces=PUBLISHED[preset],
    )


def settings(preset: str) -> list[System]:
    """Numbers of trees where the paper found its best: fewer for greedy trees than for random."""
    trees = (25, 50, 100) if "xgb" in preset else (50, 100, 200)
    return [setting(f"{preset}, T={t} d={d}", preset, t, d) for t in trees for d in DEPTHS]


TABLE = Table(
    name="dp_xgb_table1",
    title="DP-XGB, table 1: test AUC at epsilon 1",
    source="Revisiting Differentially Private XGBoost: Are Random Decision Trees Really Better "
    "than Greedy Ones?, table 1",
    datasets=DATASETS,
    systems=(DEFAULT, *(s for p in PUBLISHED for s in settings(p)), STOCK),
    epsilons=(1.0,),
    metrics={"": "auc"},
    layout="systems",
    seeds=3,
    best_of=True,
    notes=(
        "In brackets: the setting with the best mean test AUC, of six for each preset; the paper "
        "chose among 70 in the same way. Such a choice is not covered by the budget.",
        "Covtype (published on 70,000 training rows of the first 100,000) and Higgs (140,000) are "
        "at hand only as small subsamples, Covtype 25k and Higgs 11k, with their own rows.",
    ),
)
