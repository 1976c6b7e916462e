"""What happens in the middle of a training."""

from collections.abc import Callable

import xgboost as xgb


class After(xgb.callback.TrainingCallback):
    """Calls `act(model)` after each round, or after one; training ends where it returns True."""

    def __init__(self, act: Callable[[xgb.Booster], object], when: int | None = None) -> None:
        super().__init__()
        self.act, self.when = act, when

    def after_iteration(self, model: xgb.Booster, epoch: int, evals_log: object) -> bool:
        return self.when in (None, epoch) and self.act(model) is True


def interrupt(model: xgb.Booster) -> None:
    """What the interrupt key does."""
    raise KeyboardInterrupt
