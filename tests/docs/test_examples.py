"""README, tutorial and how-tos run from front to back, as a reader would type them."""

import functools
import re
import shlex
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp

pytest.importorskip("click")

from click.testing import CliRunner

from xgb_dp import policy
from xgb_dp.cli.commands import cli
from xgb_dp.errors import POLICY, RowDomainError

DOCS = Path(__file__).resolve().parents[2] / "docs"
OTHERS = [DOCS / "sarus.md"]
PRINTING = [DOCS.parent / "README.md", DOCS / "tutorial.md"]
PAGES = [*OTHERS, *PRINTING, *sorted((DOCS / "howto").glob("*.md"))]
RINGS = ["index", "reference", "evidence", "developers"]
MOST_PAGES, MOST_WORDS = 25, 25_000
# Need several workers, or other tools: a test of its own below, tests/secure/test_hosts.py, and
# tests/interop/test_tools.py.
for name in ("clusters", "federated", "tools"):
    PAGES.remove(DOCS / "howto" / f"{name}.md")


def blocks(page: Path) -> list[tuple[str, str]]:
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^ *```(\w+)\n(.*?)^ *```", text, flags=re.DOTALL | re.MULTILINE)


def run_command(line: str) -> None:
    words = shlex.split(line)
    if words[0] != "xgb-dp":
        assert words[0] in ("pip", "make", "python", "private/bin/pip"), line
        return
    result = CliRunner().invoke(cli, words[1:])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, f"{line}\n{result.output}"


def without_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of a page run in this process, which keeps none of the page's policies."""
    monkeypatch.setenv(POLICY, "")
    monkeypatch.delenv(POLICY)
    monkeypatch.setattr(policy, "_first", [])
    monkeypatch.setattr(RowDomainError, "exact", None)


# Of figures that come from noise: their standard deviation in 100 runs, by the words before them.
NOISE = {"one row ": 0.0031, "five rows ": 0.0092, "per patient: AUC ": 0.024,
         "over real visits ": 0.075, "lift of a tenth ": 0.15, "the first site: ": 140,
         "default ": 0.0026}  # fmt: skip


def assert_same_words(written: str, printed: str) -> None:
    """What a page says that a block prints: the same words, and figures within the noise.

    The last digit of any figure is rounded. A figure with noise is that of one run in the page and
    of another one here: it may be 2 deviations from the mean there, and 6 on the other side here.
    """
    first_parts, printed_parts = (re.split(r"(\d[\d.e-]*)", text) for text in (written, printed))
    assert first_parts[::2] == printed_parts[::2]
    for words, one, other in zip(
        first_parts[::2], first_parts[1::2], printed_parts[1::2], strict=False
    ):
        noise = next((sd for end, sd in NOISE.items() if words.endswith(end)), 0.0)
        unit = 10.0 ** int(Decimal(one).as_tuple().exponent)
        assert float(other) == pytest.approx(float(one), rel=0, abs=1.001 * unit + 8 * noise)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_pages_run(page, tmp_path, monkeypatch, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    without_policy(monkeypatch)
    scope: dict[str, Any] = {}
    done, printed, everything, compared = 0, "", "", 0
    for language, text in blocks(page):
        if language == "python":
            exec(compile(text, page.name, "exec"), scope)
            printed = capsys.readouterr().out
            everything += printed
        elif language == "yaml":
            name = re.match(r"# (\S+)\n", text)
            assert name, "a schema in a page starts with its file name"
            Path(name[1]).write_text(text, encoding="utf-8")
        elif language == "text":
            if page in PRINTING:
                assert_same_words(text, printed)
                compared += 1
        else:
            assert language == "bash", f"{page.name}: ```{language}"
            for line in text.splitlines():
                run_command(line)
        done += 1
    assert done
    assert compared or page not in PRINTING
    assert page.stem != "README" or "differentially private" in everything
    pytest.importorskip("matplotlib.pyplot").close("all")


WRITES = re.compile(
    r'(?:Budget|save_model|savefig|to_csv|open)\("([\w.-]+)"|xgb-dp budget ([\w.-]+)|'
    r"--(?:model|out|train|test|calibrated|report|card) ([\w.-]+)|^# ([\w-]+\.(?:yaml|py))$",
    re.MULTILINE,
)


def test_pages_keep_the_files_of_each_other():
    """A reader may run all of them in one folder."""
    pages = [*PAGES, *sorted((DOCS / "gallery").glob("*.md"))]
    page_of: dict[str, str] = {}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        runs = re.findall(
            r"^ *```(?:python|bash|yaml|\{code-cell\} python)\n(.*?)^ *```", text, re.M | re.S
        )
        for written in WRITES.findall("\n".join(runs)):
            name = next(filter(None, written))
            assert page_of.setdefault(name, page.name) == page.name, name
    assert len(page_of) > 25


def test_page_of_clusters_runs(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    # Workers in threads start at once; those in processes have tests in tests/dask.
    quick = functools.partial(distributed.LocalCluster, processes=False)
    monkeypatch.setattr(distributed, "LocalCluster", quick)
    monkeypatch.chdir(tmp_path)
    code, on_disk = (text for _, text in blocks(DOCS / "howto" / "clusters.md"))
    scope: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, "clusters.md", "exec"), scope)
    assert 0.99 < scope["report"].epsilon <= 1.0
    assert len(scope["predictions"]) == 4000
    exec(compile(on_disk, "clusters.md", "exec"), scope)
    assert 0.99 < xgb_dp.privacy_report(scope["model"]).epsilon <= 1.0


def test_table_of_epsilons():
    """The figures of `howto/epsilon.md` are those of models of the default setting."""
    text = (DOCS / "howto" / "epsilon.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| ([\d.]+) \| ([\d.]+)% \| (\d+) \|$", text, flags=re.MULTILINE)
    assert len(table) == 7
    empty = xgb.DMatrix(np.zeros((0, 10), np.float32), np.zeros(0))
    for epsilon, percent, noise in table:
        params = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_delta": 1e-6,
                  "dp_epsilon": float(epsilon)}  # fmt: skip
        report = xgb_dp.privacy_report(xgb.train(params, empty, 50))
        assert float(percent) - 0.1 <= 100 * report.attack_success <= float(percent)
        leaves = next(s for s in report.spending() if s.release == "leaves")
        multiplier = float(leaves.noise.rsplit(" ", 1)[1])
        assert float(noise) == pytest.approx(multiplier, abs=1)


def test_every_page_is_in_the_navigation():
    """The index lists the guide, and two pages the reference and the evidence.

    The pages for developers are in no list of those.
    """
    lists = {name: (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in RINGS}
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).with_suffix("").as_posix()
        if name in ("index", "developers") or name.startswith(("api/", "proofs/")):
            continue
        rings = [ring for ring, text in lists.items() if f"\n{name}\n" in text]
        assert len(rings) == 1, name
        assert f"]({name}.md" in lists[rings[0]]
    listed = (DOCS / "api" / "index.md").read_text(encoding="utf-8")
    for page in (DOCS / "api").glob("*.md"):
        assert page.stem == "index" or f"\n{page.stem}\n" in listed


def test_the_guide_can_be_read():
    """Pages and words of what a user reads; tables, code and links count."""
    (*lists,) = re.findall(r"```{toctree}\n(.*?)```", (DOCS / "index.md").read_text(), re.DOTALL)
    names = [line for text in lists for line in text.split() if (DOCS / f"{line}.md").is_file()]
    guide = [DOCS / f"{name}.md" for name in ["index", *names] if name not in RINGS[1:]]
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in guide)
    assert 20 <= len(guide) <= MOST_PAGES
    assert words <= MOST_WORDS


def test_every_public_name_is_in_the_reference():
    text = "".join(p.read_text(encoding="utf-8") for p in (DOCS / "api").glob("*.md"))
    for name in xgb_dp.__all__:
        thing = getattr(xgb_dp, name)
        where = "xgb_dp.errors" if getattr(thing, "__module__", "") == "xgb_dp.errors" else name
        assert where in text, name
    for name in xgb_dp.plotting.__all__:
        assert f"xgb_dp.plotting.{name}\n" in text, name
