"""Figure 2 of Grislain and Gonzalvez (2021): what min_child_weight does for the noise of leaves.

20 trees on Covtype. Baseline: gradient filtering and geometric clipping, the leaf sensitivity of
DPBoost. Against it: the noisy average, and min_child_weight 200 and 600.
"""

from dataclasses import replace

from ..core import STOCK, System, Table
from ..datasets import COVTYPE_25K
from .sarus_figure4 import COVTYPE, SARUS


def variant(name: str, **params: object) -> System:
    """The preset with other leaves."""
    return replace(SARUS, name=name, params=params, large={}, reproduces="")


TABLE = Table(
    name="sarus_figure2",
    title="Sarus, figure 2: min_child_weight and the noise of leaves",
    source="Grislain and Gonzalvez (2021), figure 2; published as a plot only",
    datasets=(COVTYPE, COVTYPE_25K),
    systems=(
        variant("geometric clipping", min_child_weight=0.0, dp_geometric_clip=True),
        replace(variant("noisy average", min_child_weight=1.0), preset="sarus_average"),
        variant("min_child_weight 50", min_child_weight=50.0),
        variant("min_child_weight 200", min_child_weight=200.0),
        variant("min_child_weight 600", min_child_weight=600.0),
        STOCK,
    ),
    epsilons=(1.0, 2.0, 4.0, 6.0, 8.0, 10.0),
    metrics={"": "error"},
    test_size={"": 0.2},
)
