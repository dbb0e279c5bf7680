"""Watches on a Flink session cluster: kills of every kind, every file in one generation."""

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.engines.flink import Cluster, Manager
from tests.engines.processes import guarded, wait_until
from tests.engines.runs import Run
from tests.engines.watching import (
    arrive,
    check_as_appended,
    committed,
    end,
    says,
    wait_for,
    watching,
)

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture
def flags(cluster: Cluster) -> Sequence[object]:
    return [
        *("--every", "4s", "--settle", "1s", "--workers", "1"),
        *(*cluster.flags, "--", "--checkpointing_interval=2000"),
    ]


def test_a_killed_worker_and_a_killed_task_manager_cost_nothing(
    cluster: Cluster, flags: Sequence[object], tmp_path: Path
) -> None:
    inbox, output = tmp_path / "in", tmp_path / "out"
    with watching(inbox, output, flags) as run:
        for number in range(4):
            arrive(inbox, number)
        wait_for(run, lambda: committed(output) == 4)
        carrier(cluster, run).workers()[0].kill()
        for number in range(4, 8):
            arrive(inbox, number)
        wait_for(run, lambda: committed(output) == 8)
        for number in range(8, 12):
            arrive(inbox, number)
        carrier(cluster, run).kill()
        wait_for(run, lambda: committed(output) == 12)
        end(run, number=signal.SIGTERM)
    check_as_appended(run, inbox, tmp_path)
    wait_for_no_job(cluster, run.log)


def test_a_lost_job_manager_and_a_killed_driver_cost_nothing(
    cluster: Cluster, flags: Sequence[object], tmp_path: Path
) -> None:
    inbox, output = tmp_path / "in", tmp_path / "out"
    with watching(inbox, output, flags, log="-first") as run:
        for number in range(4):
            arrive(inbox, number)
        wait_for(run, lambda: committed(output) == 4)
        cluster.replace_job_manager()
        for number in range(4, 8):
            arrive(inbox, number)
        wait_for(run, says(run, "it is submitted again"))
        wait_for(run, lambda: committed(output) == 8)
        for number in range(8, 12):
            arrive(inbox, number)
        guarded(run.process).kill()
    with watching(inbox, output, flags) as again:
        wait_for(again, lambda: committed(output) == 12)
        end(again, number=signal.SIGTERM)
    check_as_appended(again, inbox, tmp_path)
    wait_for_no_job(cluster, again.log)


def carrier(cluster: Cluster, run: Run) -> Manager:
    """The TaskManager that maps; after a restart it takes a while until one does."""
    wait_for(run, lambda: cluster.carrier("Map") is not None)
    manager = cluster.carrier("Map")
    assert manager is not None
    return manager


def wait_for_no_job(cluster: Cluster, log: Path) -> None:
    """Jobs of drivers that were killed end by themselves."""
    wait_until(lambda: cluster.running() == 0, cluster.managers[1].process, log=log)
