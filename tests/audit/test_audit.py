"""Faults are found, and the real mechanisms and trainings pass.

Audits of the real ones run at confidence 1 - 1e-6, so each alarms falsely with a chance of at most
1e-6. Those of broken ones run at 95%; each has so many draws that it misses its fault with a
chance below 1e-6, by the size of the effect in standard deviations.
"""

from dataclasses import replace
from functools import partial
from statistics import median

import numpy as np
import pytest

from tests.children import answer_of
from tests.reference import grow, trainer
from xgb_dp.audit import ApproximateClaim, AuditResult, audit_one_run
from xgb_dp.audit import __main__ as command
from xgb_dp.calibrate import calibrate
from xgb_dp.discovery.discover import plan_discovery

from . import __main__ as all_audits
from . import broken, discovery, mechanisms, persons, scenarios
from .cases import Size

SURE = 1.0 - 1e-6
ASKED, SHARES = mechanisms.small_training()
PLAN = calibrate(ASKED, SHARES, 4.0, 1e-6)
TINY = Size(draws=20_000, trainings=40, broken=40, few=100, canaries=300)


@pytest.mark.parametrize("build", mechanisms.BUILDERS)
def test_real_mechanisms_pass(build):
    result = mechanisms.audit(build(ASKED, PLAN), 100_000, confidence=SURE)
    assert not result.violated


def test_the_bound_is_near_the_claim():
    """An audit that finds nothing where there is much to find would be worth nothing.

    One audit in some hundreds picks a rejection set in a tail and shows less; the median does not.
    """
    sums = mechanisms.leaves(ASKED, PLAN)
    results = [mechanisms.audit(sums, 400_000) for _ in range(5)]
    assert median(r.lower_bound / r.claimed_epsilon for r in results) > 0.7


@pytest.mark.parametrize(
    "mechanism",
    [
        mechanisms.leaves(ASKED, PLAN, broken.less_noise(PLAN)),
        mechanisms.candidates(ASKED, PLAN, broken.less_noise(PLAN)),
        mechanisms.leaves(ASKED, PLAN, row=(1 << PLAN.grid_bits,) * 2),
        mechanisms.selections(ASKED, PLAN, broken.half_range(PLAN)),
    ],
    ids=["leaf noise", "count noise", "row", "range"],
)
def test_broken_mechanisms_are_found(mechanism):
    assert mechanisms.audit(mechanism, 200_000).violated


def test_noise_of_85_percent_is_found():
    less_noise_plan = broken.changed(
        PLAN, {"leaves": {"sigma2": round(0.7225 * PLAN["leaves"].sigma2)}}
    )
    assert mechanisms.audit(mechanisms.leaves(ASKED, PLAN, less_noise_plan), 300_000).violated


# fmt: off
SCENARIOS = {
    "min_child_weight": (
        scenarios.min_child_weight(), grow, {"utilities": broken.only_heavy_children}
    ),
    "winners": (scenarios.split_winner(), grow, {"utilities": broken.only_winners}),
    "reused": (scenarios.reused_noise(), trainer, {"Noise": broken.ReusedNoise}),
}
# fmt: on


@pytest.mark.parametrize("name", SCENARIOS)
def test_broken_algorithms_are_found(name):
    """What is found is the fault, and neither the library nor the reference trainer."""
    scenario, module, faults = SCENARIOS[name]
    train = broken.by_reference(scenario, module, **faults)
    assert scenario.audit(name, train, 200).violated
    assert not scenario.audit(name, None, 150, confidence=SURE).violated
    assert not scenario.audit("", broken.by_reference(scenario), 100, confidence=SURE).violated


def test_other_faults_are_found():
    """A seed that can be guessed, an exact sum, and a factor of predictions alone."""
    scenario = scenarios.guessed_seed(broken.with_seed, seeds=16)
    assert scenario.audit("seed", broken.clock_seeded(16), 150).violated
    scenario = scenarios.exact_sum()
    assert scenario.audit("sum", broken.exact_cover(scenario), 150).violated
    assert not scenario.audit("sum", None, 150, confidence=SURE).violated
    scenario = persons.in_one_leaf()
    assert scenario.audit("uncut", broken.uncut(scenario), 200).violated


PERSONS = {"one leaf": persons.in_one_leaf, "all leaves": persons.in_all_leaves}


# In all leaves a row moves each sum less: of 10 rows the audit would miss some.
@pytest.mark.parametrize(
    ("where", "rows"), [("one leaf", 10), ("one leaf", 40), ("all leaves", 20), ("all leaves", 40)]
)
def test_a_bound_for_rows_sold_as_one_for_persons_is_found(where, rows):
    scenario = PERSONS[where](rows)
    assert scenario.training.settings.unit == "person"
    assert scenario.audit(where, scenario.for_rows, 200).violated


@pytest.mark.parametrize("where", PERSONS)
def test_trainings_for_persons_pass_the_same_audit(where):
    for rows in (1, 40):
        assert not PERSONS[where](rows).audit(where, None, 200, confidence=SURE).violated


def test_one_run_finds_a_trainer_that_tells_everything():
    def reconstructed(rate):
        return audit_one_run(
            lambda included: included,
            lambda included: np.where(rng.random(400) < rate, included, rng.random(400)),
            400,
            ApproximateClaim(1.0, 1e-9),
            delta=1e-9,
        )

    rng = np.random.default_rng(5)
    assert reconstructed(1.0).lower_bound > 3.0
    assert reconstructed(1.0).violated
    assert reconstructed(0.0).lower_bound < 1.0
    for score, guesses, says in ((lambda i: i[:-1], None, "canary"), (lambda i: i, 51, "guesses")):
        with pytest.raises(ValueError, match=says):
            audit_one_run(lambda i: i, score, 50, ApproximateClaim(1.0), delta=0.0, guesses=guesses)


def test_table_and_page(tmp_path, monkeypatch, capsys):
    bad = AuditResult("a", "s", 1000, 1e-6, 1.0, 2.0, 0.95)
    good = replace(bad, lower_bound=-np.inf)
    assert "| a | s | 1,000 | 1e-06 | 1.000 | 2.000 | VIOLATED |" in command.table([bad])
    assert "| 0.000 | no violation |" in command.table([good])
    page = tmp_path / "page.md"
    block = f"{all_audits.BEGIN}\nold\n{all_audits.END}"
    page.write_text(f"before\n{block}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(all_audits, "cases", lambda size: [lambda: good])
    monkeypatch.setattr(broken, "cases", lambda size: [lambda: bad])
    assert all_audits.main(["--write", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "no violation" in text
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    for sound, faulty in ((bad, bad), (good, good)):
        monkeypatch.setattr(all_audits, "cases", lambda size, sound=sound: [lambda: sound])
        monkeypatch.setattr(broken, "cases", lambda size, faulty=faulty: [lambda: faulty])
        assert all_audits.main([]) == 1
        assert "NOT AS EXPECTED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("module", "option"), [("xgb_dp.audit", "--fast"), ("tests.audit", "--write")]
)
def test_commands_explain_themselves(module, option):
    assert option in answer_of("-m", module, "--help")


def test_the_command_of_users_passes_and_finds_a_trainer_without_noise(capsys, monkeypatch):
    monkeypatch.setattr(command, "FAST", command.AuditSize(trainings=30, canaries=400))
    assert command.main(["--fast"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("| no violation |") == 4
    assert shown.count("| VIOLATED |") == 1


def test_every_fault_of_the_list_has_an_audit():
    names = " ".join(map(command.audit_name, broken.cases(TINY)))
    faults = ("70%", "too small", "min_child_weight", "winners", "reused", "guessed", "saved")
    for fault in (*faults, "sold as one for persons", "not cut"):
        assert fault in names


def test_some_audits_keep_the_other_lines_of_the_page() -> None:
    old = (
        "### A\n\n| audited | d |\n|---|---|\n| x | 1 |\n| y | 2 |\n\n"
        "### B\n\n| audited | d |\n| z | 3 |"
    )
    new = "### A\n\n| audited | d |\n|---|---|\n| y | 5 |\n| w | 6 |\n\n### B\n\n| audited | d |"
    assert all_audits.merged(old, new) == (
        "### A\n\n| audited | d |\n|---|---|\n| x | 1 |\n| y | 5 |\n| w | 6 |\n\n"
        "### B\n\n| audited | d |\n| z | 3 |"
    )


def test_only_audits_of_a_name_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit_name = "evaluation of two classes, ε = 4"
    real = all_audits.cases
    monkeypatch.setattr(
        all_audits, "cases", lambda size: (partial(case, confidence=SURE) for case in real(size))
    )
    assert all_audits.main(["--fast", "--only", audit_name]) == 0
    output = capsys.readouterr().out
    assert audit_name in output and "leaf sums" not in output


def test_a_real_look_at_columns_passes():
    assert not discovery.audit_strings("texts", 5000, confidence=SURE).violated
    assert not discovery.audit_numbers("numbers", 2000, confidence=SURE).violated


def test_a_threshold_that_is_too_low_is_found():
    plan = plan_discovery(1, 0, 1.0, 0.04)
    for threshold in (1, 2 * plan.threshold // 3):
        low = replace(plan, threshold=threshold)
        assert discovery.audit_strings("texts", 5000, low).violated


def test_thin_noise_of_a_look_is_found():
    plan = plan_discovery(0, 1, 4.0, 1e-6)
    less_noise_plan = replace(plan, number_sigma2=plan.number_sigma2 // 49)
    assert discovery.audit_numbers("numbers", 3000, less_noise_plan).violated
