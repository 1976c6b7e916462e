"""Figure 2 of the DP-XGB paper: two problems of interacting columns, at epsilon 1.

10,000 rows, three columns (appendix C.2.1). The claim: greedy trees need some 35 trees, random ones
100 to 200, and one column a tree fails. ``--data`` with "few informative" runs experiment D.3.
"""

from dataclasses import replace

from ..core import DEFAULT, STOCK, System, Table
from ..datasets import Dataset

TREES = (10, 35, 100, 200)


def problem(name: str, generate: str, columns: int = 3) -> Dataset:
    """A generated task of 10,000 rows."""
    return Dataset(name, generate, generate=generate, size=(10_000, columns))


TABLE = Table(
    name="dp_xgb_figure2",
    title="DP-XGB, figure 2 and experiment D.3: interactions, few informative columns",
    source="Revisiting Differentially Private XGBoost, figures 2 and 5; published as plots only",
    datasets=(
        problem("problem 1(10000x3)", "interactions 1"),
        problem("problem 2(10000x3)", "interactions 2"),
        problem("2 informative(10000x100)", "informative 2", 100),
        problem("10 informative(10000x100)", "informative 10", 100),
        problem("30 informative(10000x100)", "informative 30", 100),
    ),
    systems=(
        *(replace(DEFAULT, name=f"default T={t}", rounds=t) for t in (10, 35)),
        replace(DEFAULT, rounds=50),
        *(
            System(
                f"{preset} T={t}",
                preset=preset,
                params={"max_depth": 5, "lambda": 1.0},
                rounds=t,
                inputs="grid",
            )
            for preset in ("dp_xgb", "dp_xgb_cyc", "dp_xgb_ada", "dp_tr", "dp_tr_cyc", "dp_tr_ada")
            for t in TREES
        ),
        STOCK,
    ),
    epsilons=(1.0,),
    metrics={"": "auc"},
    layout="trees",
    seeds=3,
)
