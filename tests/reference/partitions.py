"""Several levels at once: random partitions of one feature, and the sums of their cells."""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .candidates import MISSING, Feature
from .noise import PublicWords

Ints = npt.NDArray[np.int64]


class Source(Protocol):
    """What partitions are drawn from."""

    def below(self, n: int) -> int:
        """A uniform number below n."""


class Part(NamedTuple):
    """One split of a partition: bins up to `bin` go left, or the categories in `right` go right."""

    feature: int
    bin: int
    right: frozenset[int]
    missing_left: bool


Partition = list[Part]  # in heap order: the children of i are 2 i + 1 and 2 i + 2


def heap_of(ordered: list[int]) -> list[int]:
    """A sorted list of 2^m - 1 numbers as a search tree in heap order."""
    heap = [0] * len(ordered)

    def fill(values: list[int], at: int) -> None:
        if values:
            middle = len(values) // 2
            heap[at] = values[middle]
            fill(values[:middle], 2 * at + 1)
            fill(values[middle + 1 :], 2 * at + 2)

    fill(ordered, 0)
    return heap


def draw_partition(f: int, feature: Feature, levels: int, source: Source) -> Partition:
    """A random partition of a feature's values, drawn without looking at the data."""
    splits = (1 << levels) - 1
    if feature.cuts is None:
        return [_random_half(f, feature.size, source) for _ in range(splits)]
    if feature.size <= splits:  # a cell for each bin and for missing values, by the last cut
        heap = heap_of([min(i, feature.size - 1) for i in range(splits)])
        return [Part(f, b, frozenset(), False) for b in heap]
    cuts = feature.size - 1
    chosen = [0] * splits
    if cuts > splits:
        pool = list(range(cuts))
        for i in range(splits):
            j = i + source.below(cuts - i)
            pool[i], pool[j] = pool[j], pool[i]
        chosen = pool[:splits]
    elif cuts > 0:
        chosen = [source.below(cuts) for _ in range(splits)]
    heap = heap_of(sorted(chosen))
    return [Part(f, b, frozenset(), source.below(2) == 0) for b in heap]


def _random_half(f: int, size: int, source: Source) -> Part:
    """One category and a random half of the others, which a public number names."""
    missing_left = source.below(2) == 0
    one = source.below(size)
    name = 1 + source.below(1 << 63)
    right = [c for c in range(size) if c == one or in_half(name, c)]
    return Part(f, one, frozenset(right), missing_left)


def in_half(name: int, category: int) -> bool:
    """The last bit of SplitMix64 after `category` + 1 steps from `name`."""
    return bool(PublicWords.scatter(name + PublicWords.STEP * (category + 1)) & 1)


def cell_of(partition: Partition, bins: Ints, categorical: bool) -> Ints:
    """Which of the 2^m cells, from left to right, each row falls into."""
    at = np.zeros(len(bins), dtype=np.int64)
    for _ in range((len(partition) + 1).bit_length() - 1):
        out = np.empty_like(at)
        for i, part in enumerate(partition):
            here = at == i
            if not here.any():
                continue
            b = bins[here]
            left = ~np.isin(b, list(part.right)) if categorical else b <= part.bin
            out[here] = 2 * i + np.where(np.where(b == MISSING, part.missing_left, left), 1, 2)
        at = out
    return at - len(partition)


def cell_sums(partition: Partition, feature: Feature, pairs: Ints, rows: Ints) -> Ints:
    """Sums of the cells over some rows."""
    cells = np.zeros((len(partition) + 1, pairs.shape[1]), dtype=np.int64)
    np.add.at(cells, cell_of(partition, feature.bins[rows], feature.cuts is None), pairs[rows])
    return cells


def finest_bound(feature: Feature, pairs: Ints, rows: Ints) -> int:
    """The sum of |G| over the bins of a feature, and over missing values."""
    bins = np.where(feature.bins[rows] == MISSING, feature.size, feature.bins[rows])
    sums = np.zeros(feature.size + 1, dtype=np.int64)
    np.add.at(sums, bins, pairs[rows, 0])
    return int(np.abs(sums).sum())
