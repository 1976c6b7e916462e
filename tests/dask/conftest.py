"""A cluster of real worker processes, shared by the tests of this folder."""

from collections.abc import Iterator

import dask
import pytest
from distributed import Client, LocalCluster

from xgb_dp.testing import fix_noise_of_process

KEY = 11


@pytest.fixture(scope="package", autouse=True)
def patience() -> Iterator[None]:
    """Processes that import XGBoost on a busy machine answer late, and nobody gives up on them."""
    with dask.config.set({"distributed.comm.timeouts.connect": "300s"}):
        yield


@pytest.fixture(scope="package")
def client(patience: None) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=3, threads_per_worker=2, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def known_noise(client: Client) -> Iterator[None]:
    client.run(fix_noise_of_process, KEY)
    yield
    client.run(fix_noise_of_process, None)
