"""Table 5 of Maddock et al. (2022): batched updates, 200 random trees of depth 4, epsilon 0.1."""

from ..core import DEFAULT, STOCK, System, Table
from .maddock_table3 import DATASETS, FOREST


def batch(size: int) -> System:
    """Rounds of `size` trees that are averaged."""
    return System(
        f"dp_tr B={size}",
        preset="dp_tr",
        params={"max_depth": 4, "num_parallel_tree": size},
        rounds=200 // size,
        inputs="grid",
        reproduces="Newton (B=1)" if size == 1 else f"Batch (B={size})",
    )


TABLE = Table(
    name="maddock_table5",
    title="Maddock et al., table 5: batched updates",
    source="Maddock et al. (2022), table 5",
    datasets=DATASETS,
    systems=(
        DEFAULT,
        *map(batch, (1, 10, 20, 50, 100, 200)),
        System(
            "dp_rf B=200",
            preset="dp_rf",
            params={"max_depth": 4, "num_parallel_tree": 200, **FOREST},
            rounds=1,
            inputs="grid",
            reproduces="DP-RF (B=200)",
        ),
        STOCK,
    ),
    epsilons=(0.1,),
    metrics={"": "auc"},
    layout="systems",
    stratify=True,
    seeds=3,
)
