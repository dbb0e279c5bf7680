"""Starts Spark, from the jars of `make engines`, as a cluster or in Beam's job server."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.engines.java import (
    OPENS,
    ROOT,
    Machine,
    cluster_flags,
    java,
    machine_hosts,
    make_dir,
    worker_pool,
)
from tests.engines.processes import answers, started, wait_until
from tests.ports import free_port

HOME = ROOT / ".engines" / "spark"
"""The value of SPARK_HOME; executors use the jars in its folder `jars`."""
JARS = HOME / "jars"

_DEPLOY = "org.apache.spark.deploy"
_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss.SSS} %-5p %c{1}: %m%n%ex
"""


@dataclass
class Cluster:
    """A standalone Spark cluster, with its worker pools and its job server."""

    pool_port: int
    machines: list[Machine] = field(default_factory=list)
    endpoint: str = ""

    @property
    def flags(self) -> list[str]:
        """The flags that make a run use the cluster."""
        return [
            *cluster_flags(self.endpoint, self.pool_port),
            # Otherwise the job server sends its class path, 300 MB, to each executor with every
            # job.
            "--",
            f"--files_to_stage={next(JARS.glob('slf4j-api-*.jar'))}",
        ]


@contextmanager
def job_server(folder: Path, *, master: str = "local[2]") -> Iterator[str]:
    """Yield the endpoint of a job server with its own Spark, or for the cluster at `master`."""
    port, log = free_port(), make_dir(folder) / "job-server.log"
    options = [
        "-Xmx900m", f"-Djava.io.tmpdir={make_dir(folder / 'tmp')}", _logging(folder),
        "-Dspark.ui.enabled=false", "-Dspark.driver.host=127.0.0.1",
        "-Dspark.executor.memory=512m", f"-Dspark.local.dir={make_dir(folder / 'tmp')}",
    ]  # fmt: skip
    command = java(
        "org.apache.beam.runners.spark.SparkJobServerDriver",
        "--job-host", "127.0.0.1", "--job-port", port, "--artifact-port", 0,
        "--expansion-port", 0, "--artifacts-dir", folder / "artifacts",
        "--spark-master-url", master,
        options=options, path=f"{JARS}/*",
    )  # fmt: skip
    with started(command, log=log, env=_environment()) as process:
        wait_until(lambda: "Job server now running" in log.read_text(), process, log=log)
        yield f"localhost:{port}"


@contextmanager
def standalone_cluster(folder: Path, *, machines: int = 2) -> Iterator[Cluster]:
    """Yield a cluster: a master, one-core workers that each have a worker pool, a job server."""
    port, cluster = free_port(), Cluster(free_port())
    master, log = f"spark://127.0.0.1:{port}", make_dir(folder) / "master.log"
    command = java(
        f"{_DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", 0,
        options=["-Xmx256m", _logging(folder)], path=f"{JARS}/*",
    )  # fmt: skip
    with ExitStack() as stack:
        process = stack.enter_context(started(command, log=log, env=_environment()))
        wait_until(lambda: answers(port), process, log=log)
        for number in range(machines):
            machine = _machine(folder, number, master=master, pool_port=cluster.pool_port)
            cluster.machines.append(stack.enter_context(machine))
        wait_until(
            lambda: log.read_text().count("Registering worker") == machines, process, log=log
        )
        cluster.endpoint = stack.enter_context(job_server(folder, master=master))
        yield cluster


@contextmanager
def _machine(folder: Path, number: int, *, master: str, pool_port: int) -> Iterator[Machine]:
    """Yield a Spark worker to whose executors the host name POOL means the worker's own pool."""
    address, hosts = machine_hosts(folder, number)
    command = java(
        f"{_DEPLOY}.worker.Worker", "--host", "127.0.0.1", "--cores", 1, "--memory", "600m",
        "--webui-port", 0, "--work-dir", make_dir(folder / f"work-{number}"), master,
        options=["-Xmx256m", _logging(folder)], path=f"{JARS}/*",
    )  # fmt: skip
    # The worker starts its executors with this environment, from which Java takes options.
    options = " ".join([*OPENS, f"-Djdk.net.hosts.file={hosts}", _logging(folder)])
    environment = {**_environment(), "JDK_JAVA_OPTIONS": options}
    with (
        worker_pool(folder, number, address=address, port=pool_port) as pool,
        started(command, log=folder / f"worker-{number}.log", env=environment) as process,
    ):
        yield Machine(f"worker-{number}", process, pool)


def _environment() -> dict[str, str]:
    # If Scala's version is missing, executors end at once and print no message.
    return {**os.environ, "SPARK_HOME": str(HOME), "SPARK_SCALA_VERSION": "2.12"}


def _logging(folder: Path) -> str:
    """Return the Java option that makes Spark log to the standard error."""
    path = folder / "log4j2.properties"
    path.write_text(_LOGGING)
    return f"-Dlog4j2.configurationFile={path}"
