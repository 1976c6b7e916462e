"""A training on a Dask cluster begins once: the cluster does not repeat it by itself.

Dask runs the tasks of a dead worker again, and those that failed where retries are set. For a
training that would be new noise on the same rows, and only the ledger of the last run would come
back. A worker is known by the name that Dask draws for it when it starts: one that is started anew
has another name, whatever its address is.

Proof: docs/proofs/distributed.md
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from ..errors import PrivacyRefusal, named

_BEGUN: set[tuple[str, str]] = set()  # training and worker, for the life of this process


@dataclass(frozen=True)
class Once:
    """A training that each of the workers of a cluster may begin once."""

    workers: frozenset[str]  # names of those that were there when it was started
    name: str = field(default_factory=secrets.token_hex)

    @classmethod
    async def now(cls, client: Any) -> Once:
        """A training on the workers that run now."""

        # Defined here, it travels as it is, so that the scheduler needs no package of this name.
        def names(dask_scheduler: Any) -> list[str]:
            return [worker.server_id for worker in dask_scheduler.workers.values()]

        return cls(frozenset(await client.run_on_scheduler(names)))

    def begin(self) -> None:
        """Called by a worker before it joins the others, so that nobody waits for it."""
        from distributed import get_worker

        worker = get_worker().id
        if worker not in self.workers or (self.name, worker) in _BEGUN:
            raise PrivacyRefusal(
                "The cluster was about to begin this training again, because a worker was lost or "
                "a task failed. The first run may have released noisy results, and a second one "
                f"would draw new noise for the same rows. Count {named.dp_epsilon} and "
                f"{named.dp_delta} as "
                "spent, find out what ended the first run, and start another training yourself."
            )
        _BEGUN.add((self.name, worker))
