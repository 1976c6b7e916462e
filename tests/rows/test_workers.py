"""Numbers of rows are those of all workers, whose sums must stay exact."""

import pytest

from tests.children import run_workers

COUNTED = r"""
import json, sys
import xgboost as xgb
from tests.noise.native import row_limits
from tests.peers.test_workers import PARAMS, part

task = json.loads(sys.stdin.read())
with xgb.collective.CommunicatorContext(**task["worker"]), row_limits(total=task["most"]):
    try:
        xgb.train(PARAMS, part(xgb.collective.get_rank(), 2, 3), 2)
        print("trained")
    except xgb.core.XGBoostError as error:
        print("too many rows" if "too many rows" in str(error) else error)
"""


@pytest.mark.parametrize(("most", "says"), [(1500, "trained"), (1499, "too many rows")])
def test_rows_of_all_workers_are_counted_together(most, says):
    """Each of them alone has fewer rows than the limit."""
    done = run_workers(COUNTED, [{"most": most}] * 2)
    assert [one.stdout.splitlines()[-1] for one in done] == [says] * 2, done
