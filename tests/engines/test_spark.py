"""After kill -9 on a Spark cluster, the job continues, with the bytes of a run in one process.

Guarantee: `kill -9` of a worker or executor of a Spark cluster changes no byte.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from tests.engines import spark
from tests.engines.inputs import write
from tests.engines.processes import wait_until
from tests.engines.runs import Run, check_same, completed_run, started_run

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> Sequence[object]:
    corpus = write("wudao", tmp_path_factory.mktemp("faults") / "wudao")
    return ["--input", corpus, "--split-bytes", "6000", "--shards", "8"]


@pytest.fixture
def run(spark_cluster: spark.Cluster, flags: Sequence[object], tmp_path: Path) -> Iterator[Run]:
    with started_run("pipelines.wudao", [*flags, *spark_cluster.flags], tmp_path / "out") as run:
        yield run


def busiest(processes: Sequence[psutil.Process]) -> psutil.Process:
    return max(processes, key=lambda process: sum(process.cpu_times()[:2]))


@pytest.mark.parametrize("victims", ["workers", "executors"])
def test_a_process_is_killed_while_it_processes_splits(
    run: Run,
    spark_cluster: spark.Cluster,
    flags: Sequence[object],
    tmp_path: Path,
    victims: str,
) -> None:
    records = run.output / ".work" / "map"
    wait_until(
        lambda: len(list(records.glob("[!.]*.json"))) >= 5, run.process, log=run.log, seconds=400
    )
    killed = busiest([p for m in spark_cluster.machines for p in getattr(m, victims)()])
    killed.kill()
    log = run.finish()
    assert "map 100 %" in log
    check_same(run, completed_run("pipelines.wudao", flags, tmp_path / "reference"))
