"""Data on disk: the model is that of memory, from a fraction of it, and no rows are left behind."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import xgboost as xgb

from tests.callbacks import After
from tests.children import child
from tests.conftest import private
from xgb_dp.testing import fixed_noise

from ..batches import Batches

KEY = 7
N, F = 900, 6
PARAMS = private(objective="binary:logistic", dp_epsilon=4.0, max_depth=4, verbosity=0)
OpenFile = tuple[str, tuple[int, int, int, int]]  # name; inode, mode, size, time of last change
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


FORKED = """
import multiprocessing, sys
from pathlib import Path
import numpy as np
import xgboost as xgb
from tests.batches import Batches


def low_and_high(number, folder, made, out):
    X = np.full((50, 1), float(number), dtype=np.float32)
    d = xgb.DMatrix(Batches([(X, np.zeros(50))] * 2, folder), nthread=1)
    made.wait()
    cells = [float(v) for v in set(step.predict(d, output_margin=True))]
    out.put((number, cells))
    made.wait()  # no file is gone before both have read


if __name__ == "__main__":
    X = np.array([[0.0], [1.0]] * 20)
    step = xgb.train({"nthread": 1, "min_child_weight": 0, "max_depth": 1}, xgb.DMatrix(X, X[:, 0]))
    low, high = step.predict(xgb.DMatrix(X[:2]), output_margin=True)
    context = multiprocessing.get_context("fork")
    made, out = context.Barrier(2), context.Queue()
    arguments = (Path(sys.argv[1]), made, out)
    workers = [context.Process(target=low_and_high, args=(k, *arguments)) for k in (0, 1)]
    for worker in workers:
        worker.start()
    found = dict(out.get(timeout=300) for _ in workers)
    assert found == {0: [float(low)], 1: [float(high)]}, found
"""


@LINUX
def test_processes_that_fork_have_pages_of_their_own(tmp_path):
    """Addresses are the same in both, and so were the names of the files."""
    ended = child(FORKED, tmp_path)
    assert ended.returncode == 0, ended.stderr


def rows(density: tuple[float, float, float]) -> list[tuple[Any, Any]]:
    """Three batches in which these shares of the cells are stored; F columns wide as a whole."""
    rng = np.random.default_rng(3)
    parts = []
    for share in density:
        X = rng.normal(size=(N // 3, F)).astype(np.float32)
        signal = X[:, 0] + X[:, 1] * X[:, 2]
        X[rng.random(X.shape) >= share] = np.nan
        X[0] = 1.0
        parts.append((X, (signal > 0).astype(np.float32)))
    return parts


def csr(X: Any) -> Any:
    stored = ~np.isnan(X)
    indptr = np.append(0, np.cumsum(stored.sum(axis=1)))
    return scipy.sparse.csr_matrix((X[stored], np.nonzero(stored)[1], indptr), X.shape)


def fit(d: xgb.DMatrix, **extra: Any) -> bytes:
    with fixed_noise(KEY):
        return bytes(xgb.train(PARAMS | extra, d, 5).save_raw("ubj"))


# One byte a cell, two where a feature has more bins than a byte holds, and one entry a stored cell.
MANY_BINS = {"max_bin": 300, "dp_feature_bounds": dict.fromkeys(range(F), (-3.0, 3.0))}


@pytest.mark.parametrize("extra", [{}, MANY_BINS], ids=["64 bins", "300 bins"])
@pytest.mark.parametrize(
    "density",
    [(1.0, 1.0, 1.0), (0.8, 0.9, 0.7), (0.2, 0.1, 0.3), (1.0, 0.1, 0.8), (1.0, 0.1, 0.1)],
    ids=str,
)
def test_model_does_not_depend_on_the_layout_of_pages(density, extra, tmp_path):
    parts = rows(density)
    X, y = (np.concatenate(v) for v in zip(*parts, strict=True))
    expected = fit(xgb.DMatrix(X, y), **extra)
    assert fit(xgb.DMatrix(csr(X), y), **extra) == expected
    assert fit(xgb.DMatrix(Batches(parts, tmp_path)), **extra) == expected
    sparse = [(csr(a), b) for a, b in parts]
    assert fit(xgb.DMatrix(Batches(sparse, tmp_path)), **extra) == expected
    assert fit(xgb.DMatrix(Batches(sparse, tmp_path)), nthread=2, **extra) == expected


@pytest.mark.parametrize("levels", [1, 2])
def test_sums_of_stored_cells_are_those_of_all_bins(levels, tmp_path):
    # In memory the page is sparse, and so are its sums. On disk the first page is dense, and the
    # sums have all bins. Nodes have rows of several blocks, and columns that none of them has.
    rng = np.random.default_rng(5)
    n, width = 20_000, 40
    X = rng.integers(0, 9, (n, width)).astype(np.float32)
    X[rng.random(X.shape) >= np.linspace(0.6, 0.0005, width)] = np.nan
    X[:200] = 1.0
    y = (rng.random(n) < 0.3 + 0.4 * (np.nan_to_num(X[:, 0]) > 3)).astype(np.float32)
    parts = [(csr(X[:200]), y[:200]), (csr(X[200:]), y[200:])]
    extra = {"dp_split_levels": levels, "max_depth": 6, "dp_split": "exponential"}
    models = [
        fit(xgb.DMatrix(csr(X), y), nthread=1, **extra),
        fit(xgb.DMatrix(csr(X), y), nthread=3, **extra),
        fit(xgb.DMatrix(Batches(parts, tmp_path)), nthread=1, **extra),
    ]
    assert models[0] == models[1] == models[2]


def open_pages() -> list[OpenFile]:
    """Name, and identity with size and time, of each open file of binned rows."""
    pages = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            name, stat = os.readlink(link), link.stat()
        except OSError:  # that of the listing itself
            continue
        if ".dp_bins.page." in name:
            identity = (stat.st_ino, stat.st_mode & 0o777, stat.st_size, stat.st_mtime_ns)
            pages.append((name, identity))
    return pages


def pages_of(d: xgb.DMatrix, rounds: int, **params: Any) -> list[list[OpenFile]]:
    """The open files of binned rows after each round of a training."""
    seen: list[list[OpenFile]] = []
    act = After(lambda _: seen.append(open_pages()))
    xgb.train(PARAMS | params, d, rounds, callbacks=[act])
    return seen


@LINUX
def test_pages_are_nameless_files_beside_the_cache(tmp_path):
    seen = pages_of(xgb.DMatrix(Batches(rows((1.0, 1.0, 1.0)), tmp_path)), 4)
    (page,) = seen[0]
    name, (_, mode, size, _) = page
    assert name.startswith(str(tmp_path / "cache"))
    assert name.endswith(" (deleted)")
    assert mode == 0o600
    assert size >= N * F  # a byte a cell
    # Binned once, in the first round, and gone after the last tree.
    assert seen == [[page]] * 3 + [[]]
    assert not open_pages()
    assert all(path.name.endswith(".row.page") for path in tmp_path.iterdir())


@LINUX
def test_candidates_of_each_tree_are_binned_anew(tmp_path):
    d = xgb.DMatrix(Batches(rows((1.0, 1.0, 1.0)), tmp_path))
    seen = pages_of(d, 4, tree_method="dp_approx")
    assert [len(pages) for pages in seen] == [1, 1, 1, 0]
    assert len({pages[0][0] for pages in seen[:-1]}) == 3  # each file had a name of its own


NO_ROOM = """
import resource, sys
import xgboost as xgb
from pathlib import Path
from tests.batches import Batches
from tests.rows.test_external_memory import PARAMS, rows

d = xgb.DMatrix(Batches(rows((1.0, 1.0, 1.0)), Path(sys.argv[1])))
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
xgb.train(PARAMS, d, 1)
"""


@LINUX
def test_no_room_is_an_error_before_any_tree(tmp_path):
    """The bins of a row take a byte a cell: files of a thousand bytes cannot hold them."""
    ended = child(NO_ROOM, tmp_path)
    assert ended.returncode != 0
    assert "Cannot reserve disk space for binned rows" in ended.stderr
    assert "`cache_prefix`" in ended.stderr
    assert not [path for path in tmp_path.iterdir() if "dp_bins" in path.name]


@LINUX
def test_pages_need_no_file_in_memory():
    X, y = rows((1.0, 1.0, 1.0))[0]
    assert pages_of(xgb.DMatrix(X, y), 2) == [[], []]


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
import xgboost as xgb
from tests.batches import Batches

COLUMNS = 400

def status(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) << 10

class Drawn:
    def __init__(self, batches, rows):
        self.batches, self.rows = batches, rows
    def __len__(self):
        return self.batches
    def __getitem__(self, number):
        X = np.random.default_rng(number).random((self.rows, COLUMNS), dtype=np.float32)
        return X, (X[:, 0] + X[:, 1] > 1).astype(np.float32)

def train(batches, rows):
    grid = (0.0, 1.0, "even")  # public cuts; the first 8 columns have private candidates
    bounds = dict.fromkeys(range(8, COLUMNS), grid)
    params = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0,
              "dp_delta": 1e-6, "max_depth": 4, "dp_feature_bounds": bounds, "nthread": 1}
    d = xgb.DMatrix(Batches(Drawn(batches, rows), Path(sys.argv[1])), nthread=1)
    return xgb.train(params, d, 4), d

train(2, 50)  # what a training needs by itself: libraries, threads
before = status("VmSize")
allowed = 4 * COLUMNS * 80 * 1050 // 5
resource.setrlimit(resource.RLIMIT_AS, (before + allowed, before + allowed))
model, d = train(80, 1050)
assert (d.num_row(), model.num_boosted_rounds()) == (80 * 1050, 4)
assert status("VmPeak") - before <= allowed
"""


@LINUX
def test_training_under_a_limit_of_a_fifth_of_the_data(tmp_path):
    """All memory that the process may map, files included, is limited once libraries are loaded."""
    ended = child(LIMITED, tmp_path, MALLOC_ARENA_MAX="1")  # of 128 MiB of 32-bit floats
    assert ended.returncode == 0, ended.stderr[-2000:]
