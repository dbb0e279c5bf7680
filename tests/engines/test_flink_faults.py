"""kill -9 on a Flink cluster: the job ends by itself, with the bytes of an undisturbed run."""

import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from tests.engines.flink import Cluster, Manager
from tests.engines.inputs import write_wudao
from tests.engines.processes import guarded, wait_until
from tests.engines.runs import Run, begun, check_same, finished
from tests.pipelines.runs import content

pytestmark = [pytest.mark.engine, pytest.mark.slow]

Tell = Callable[[str, str, Run], None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def flags(folder: Path) -> Sequence[object]:
    corpus = write_wudao(folder / "wudao", documents=900)
    return ["--input", corpus, "--split-bytes", "6000", "--shards", "48"]


@pytest.fixture(scope="module")
def reference(folder: Path, flags: Sequence[object]) -> Run:
    return finished("pipelines.wudao", flags, folder / "reference")


@pytest.fixture
def run(cluster: Cluster, flags: Sequence[object], tmp_path: Path) -> Iterator[Run]:
    """A run that has begun on the cluster that the test breaks."""
    with begun("pipelines.wudao", [*flags, *cluster.flags], tmp_path / "out") as run:
        yield run


def in_the_middle(run: Run, cluster: Cluster, phase: str) -> Manager:
    """The TaskManager that runs a phase of which some tasks are done, and others are not."""

    def done() -> int:
        return len(list((run.output / ".work" / phase).glob("[!.]*.json")))

    wait_until(lambda: done() >= 5, run.process, log=run.log, seconds=400)
    manager = cluster.carrier(f"{phase.capitalize()}/Run")
    assert manager is not None, f"{phase} ended before anything was killed"
    return manager


def running(cluster: Cluster) -> bool:
    """Whether a job is still at work: Flink may take a while to give up a batch job."""
    ended = {"FINISHED", "CANCELED", "FAILED"}
    return any(job["state"] not in ended for job in cluster.ask("jobs/overview")["jobs"])


def the_same(run: Run, reference: Run, cluster: Cluster) -> None:
    """Check that the run ends, well, after a restart."""
    run.finish()
    check_same(run, reference)
    assert cluster.restarts() > 0


def test_a_python_worker_is_killed_in_the_map(
    run: Run, cluster: Cluster, reference: Run, tell: Tell
) -> None:
    manager = in_the_middle(run, cluster, "map")
    busiest = max(manager.workers(), key=lambda each: sum(each.cpu_times()[:2]))
    busiest.kill()
    the_same(run, reference, cluster)
    tell("worker killed in map", "wudao", run)


@pytest.mark.parametrize("phase", ["map", "merge"])
def test_the_task_manager_that_carries_the_job_is_killed(
    run: Run, cluster: Cluster, reference: Run, tell: Tell, phase: str
) -> None:
    manager = in_the_middle(run, cluster, phase)
    orphans = manager.workers()
    assert orphans
    manager.kill()
    the_same(run, reference, cluster)
    assert cluster.ask("overview")["taskmanagers"] == 1
    # The pool, which lives on, reaps those of its workers that have ended when it is asked to.
    left = [each for each in orphans if each.is_running()]
    assert all(each.status() == psutil.STATUS_ZOMBIE for each in left), "orphans go on for ever"
    tell(f"machine killed in {phase}", "wudao", run)


def test_ctrl_c_ends_the_driver_and_another_engine_finishes_the_run(
    run: Run, cluster: Cluster, reference: Run, flags: Sequence[object]
) -> None:
    in_the_middle(run, cluster, "map")
    guarded(run.process).send_signal(signal.SIGINT)
    assert run.process.wait(timeout=100) == 130
    assert "stopped; the same command goes on from here" in run.log.read_text()
    wait_until(lambda: not running(cluster), cluster.managers[0].process, log=run.log, seconds=400)
    again = finished("pipelines.wudao", flags, run.output)
    assert "tasks were finished before" in again.log.read_text()
    assert content(again.output) == content(reference.output)
