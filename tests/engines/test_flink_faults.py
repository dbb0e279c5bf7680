"""After kill -9 on a Flink cluster, the job finishes, with the bytes of an uninterrupted run.

Guarantee: `kill -9` of a worker or machine of a Flink cluster changes no byte.
"""

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from tests.engines.flink import Cluster
from tests.engines.inputs import write
from tests.engines.java import Machine
from tests.engines.processes import guarded, wait_until
from tests.engines.runs import Run, check_same, completed_run, started_run
from tests.pipelines.metrics import check_metrics
from tests.pipelines.runs import content

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def flags(folder: Path) -> Sequence[object]:
    corpus = write("wudao", folder / "wudao", damage=0.03)
    rules = ["--quality", "glm", "--min-chars", "1", "--max-reject-rate", "0.1"]
    return ["--input", corpus, "--split-bytes", "6000", "--shards", "48", *rules]


@pytest.fixture(scope="module")
def reference(folder: Path, flags: Sequence[object]) -> Run:
    return completed_run("pipelines.wudao", flags, folder / "reference")


@pytest.fixture
def run(cluster: Cluster, flags: Sequence[object], tmp_path: Path) -> Iterator[Run]:
    """A run on the cluster, which the test interrupts."""
    with started_run("pipelines.wudao", [*flags, *cluster.flags], tmp_path / "out") as run:
        yield run


def in_the_middle(run: Run, cluster: Cluster, phase: str) -> Machine:
    """Wait for the middle of a stage, and return the TaskManager that runs the stage."""

    def done() -> int:
        return len(list((run.output / ".work" / phase).glob("[!.]*.json")))

    wait_until(lambda: done() >= 5, run.process, log=run.log, seconds=400)
    manager = cluster.carrier({"map": "Read, clean", "merge": "Merge shards"}[phase])
    assert manager is not None, f"{phase} ended before anything was killed"
    return manager


def running(cluster: Cluster) -> bool:
    """Return whether a job is running; the job server does not cancel batch jobs on a cluster."""
    ended = {"FINISHED", "CANCELED", "FAILED"}
    return any(job["state"] not in ended for job in cluster.ask("jobs/overview")["jobs"])


def check_finishes(run: Run, reference: Run, cluster: Cluster) -> None:
    """Check that the run succeeds after a restart, with the bytes of the reference.

    Each item must count once in the metrics, although Flink forgets the counts of failed attempts.
    """
    run.finish()
    check_same(run, reference)
    assert cluster.restarts() > 0
    report = run.report()
    check_metrics(cluster.counts("corpusmill out"), report)


def test_a_python_worker_is_killed_while_it_processes_splits(
    run: Run, cluster: Cluster, reference: Run
) -> None:
    manager = in_the_middle(run, cluster, "map")
    busiest = max(manager.workers(), key=lambda worker: sum(worker.cpu_times()[:2]))
    busiest.kill()
    check_finishes(run, reference, cluster)


@pytest.mark.parametrize("phase", ["map", "merge"])
def test_the_task_manager_that_carries_the_job_is_killed(
    run: Run, cluster: Cluster, reference: Run, phase: str
) -> None:
    manager = in_the_middle(run, cluster, phase)
    orphans = manager.workers()
    assert orphans
    manager.kill()
    check_finishes(run, reference, cluster)
    assert cluster.ask("overview")["taskmanagers"] == 1
    # The pool is still alive, but reaps ended workers only on request.
    left = [worker for worker in orphans if worker.is_running()]
    assert all(worker.status() == psutil.STATUS_ZOMBIE for worker in left), "orphans run on"


def test_ctrl_c_ends_the_driver_and_another_engine_finishes_the_run(
    run: Run, cluster: Cluster, reference: Run, flags: Sequence[object]
) -> None:
    in_the_middle(run, cluster, "map")
    guarded(run.process).send_signal(signal.SIGINT)
    assert run.process.wait(timeout=100) == 130
    assert "stopped; run the same command to continue" in run.log.read_text()
    wait_until(lambda: not running(cluster), cluster.managers[0].process, log=run.log, seconds=400)
    again = completed_run("pipelines.wudao", flags, run.output)
    assert "items were finished before" in again.log.read_text()
    assert content(again.output) == content(reference.output)
