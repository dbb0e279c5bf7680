"""Fixtures that start the engines."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import flink, java, spark

PRISM = java.ROOT / ".engines" / "bin" / "prism"


@pytest.fixture(scope="module")
def prism() -> list[str]:
    """The flags for Prism, which Beam itself starts."""
    if not PRISM.exists():
        pytest.skip(f"{PRISM} is missing: run make engines")
    return ["--runner=PrismRunner", f"--prism_location={PRISM}", "--environment_type=LOOPBACK"]


LOCAL = ("--runner=PortableRunner", "--environment_type=LOOPBACK")
"""Flags for a job server whose workers are children of the driver."""


@pytest.fixture(scope="module")
def job_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The flags for a job server that contains Flink."""
    _check(flink.JARS)
    with flink.job_server(tmp_path_factory.mktemp("job-server")) as endpoint:
        yield [*LOCAL, f"--job_endpoint={endpoint}", "--parallelism=2"]


@pytest.fixture(scope="module")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The flags for a job server that contains Spark."""
    _check(spark.JARS)
    with spark.job_server(tmp_path_factory.mktemp("spark-server")) as endpoint:
        yield [*LOCAL, f"--job_endpoint={endpoint}"]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The flags for a session cluster with two TaskManagers."""
    _check(flink.JARS)
    with flink.session_cluster(tmp_path_factory.mktemp("session")) as cluster:
        yield cluster.flags


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[flink.Cluster]:
    """A session cluster that only one test uses, so that the test may break it."""
    _check(flink.JARS)
    with flink.session_cluster(tmp_path / "flink") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[spark.Cluster]:
    """A standalone cluster with two workers."""
    _check(spark.JARS)
    with spark.standalone_cluster(tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster


@pytest.fixture
def spark_session(spark_cluster: spark.Cluster) -> list[str]:
    """The flags for the standalone cluster."""
    return spark_cluster.flags


def _check(jars: Path) -> None:
    reason = java.why_missing(jars)
    if reason:
        pytest.skip(reason)
