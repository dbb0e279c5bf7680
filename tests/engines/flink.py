"""Starts Flink, from the jars of `make engines`, in Beam's job server or as a cluster."""

import base64
import json
import re
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.execute.counters import NAMESPACE
from tests.engines.java import (
    ROOT,
    Machine,
    cluster_flags,
    java,
    joined,
    machine_hosts,
    make_dir,
    worker_pool,
)
from tests.engines.processes import answers, started, wait_until
from tests.ports import free_port

JARS = ROOT / ".engines" / "flink" / "lib"

_LOGGED = [
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
]

_COUNTER = "beam:metric:user:sum_int64:v1"
_FLINK = re.compile(r"(beam-runners-flink|flink-(?!shaded|rpc-akka-loader))")

_CONFIG = """\
taskmanager.network.sort-shuffle.min-buffers: 16
jobmanager:
  bind-host: 127.0.0.1
  rpc: {{address: 127.0.0.1, port: {rpc}}}
  memory:
    heap.size: 320m
    off-heap.size: 128m
    jvm-metaspace.size: 192m
    jvm-overhead: {{min: 64m, max: 64m}}
taskmanager:
  bind-host: 127.0.0.1
  host: 127.0.0.1
  cpu.cores: 1
  numberOfTaskSlots: {slots}
  memory:
    framework: {{heap.size: 128m, off-heap.size: 128m}}
    task: {{heap.size: 256m, off-heap.size: 0b}}
    managed.size: 64m
    network: {{min: 64m, max: 64m}}
    jvm-metaspace.size: 256m
    jvm-overhead: {{min: 64m, max: 64m}}
rest: {{address: 127.0.0.1, bind-address: 127.0.0.1, port: {rest}}}
heartbeat: {{interval: 1000, timeout: 8000}}
slot.request.timeout: 120000
restart-strategy:
  type: fixed-delay
  fixed-delay: {{attempts: 10, delay: 1 s}}
classloader.resolve-order: parent-first
io.tmp.dirs: {folder}/tmp
"""


@contextmanager
def job_server(folder: Path, *, master: str = "[local]") -> Iterator[str]:
    """Yield the endpoint of a job server with its own Flink, or for the cluster at `master`."""
    port, log = free_port(), make_dir(folder) / "job-server.log"
    options = ["-Xmx900m", f"-Djava.io.tmpdir={make_dir(folder / 'tmp')}"]
    path = f"{JARS}/*"
    if master != "[local]":
        # The server sends its class path, 150 MB, to the cluster with every job: 18 s on two cores.
        # The cluster already has Flink's jars, so all other jars go to the boot path.
        own = [jar for jar in sorted(JARS.glob("*.jar")) if _FLINK.match(jar.name)]
        others = [jar for jar in sorted(JARS.glob("*.jar")) if jar not in own]
        path = joined(own)
        options += [f"-Xbootclasspath/a:{joined(others)}"]
    command = _flink(
        "org.apache.beam.runners.flink.FlinkJobServerDriver",
        "--job-port", port, "--artifact-port", 0, "--expansion-port", 0,
        "--artifacts-dir", folder / "artifacts", "--flink-master", master,
        options=options, path=path,
    )  # fmt: skip
    with started(command, log=log) as process:
        wait_until(lambda: "Job server now running" in log.read_text(), process, log=log)
        yield f"localhost:{port}"


@dataclass
class Cluster:
    """A Flink session cluster, with its worker pools and its job server."""

    rest: int
    pool_port: int
    slots: int
    managers: list[Machine]
    endpoint: str = ""

    @property
    def flags(self) -> list[str]:
        """The flags that make a run use the cluster."""
        return [*cluster_flags(self.endpoint, self.pool_port), f"--parallelism={self.slots}"]

    def carrier(self, vertex: str) -> Machine | None:
        """Return the TaskManager that runs a step with `vertex` in its name, or None."""
        for job in self.ask("jobs/overview")["jobs"]:
            if job["state"] != "RUNNING":
                continue
            for step in self.ask(f"jobs/{job['jid']}")["vertices"]:
                if vertex in step["name"] and step["status"] == "RUNNING":
                    (first, *_) = self.ask(f"jobs/{job['jid']}/vertices/{step['id']}")["subtasks"]
                    return next(
                        (m for m in self.managers if m.name == first["taskmanager-id"]), None
                    )
        return None

    def restarts(self) -> int:
        """Return the number of jobs that have restarted."""
        jobs = [job["jid"] for job in self.ask("jobs/overview")["jobs"]]
        return sum(self.ask(f"jobs/{jid}")["timestamps"]["RESTARTING"] > 0 for jid in jobs)

    def counts(self, job: str) -> dict[str, Counter[str]]:
        """Return corpusmill's counters, by stage, of the jobs with this name, from the REST API."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for listed in self.ask("jobs/overview")["jobs"]:
            if listed["name"] != job:
                continue
            found = self.ask(f"jobs/{listed['jid']}/accumulators")["user-task-accumulators"]
            for metric in _metrics(found):
                if metric["urn"] == _COUNTER and metric["labels"]["NAMESPACE"] == NAMESPACE:
                    payload = base64.b64decode(metric["payload"])
                    stage, colon, name = metric["labels"]["NAME"].rpartition(": ")
                    counts[stage if colon else "map"][name] += _whole_number(payload)
        return counts

    def has(self, managers: int) -> bool:
        """Return whether the cluster has exactly this number of TaskManagers."""
        try:
            return bool(self.ask("overview")["taskmanagers"] == managers)
        except urllib.error.HTTPError:
            return False

    def ask(self, path: str) -> Any:
        """Request a path of the cluster's REST API, and return the response."""
        url = f"http://127.0.0.1:{self.rest}/{path}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)


@contextmanager
def session_cluster(folder: Path, *, managers: int = 2, slots: int = 2) -> Iterator[Cluster]:
    """Yield a cluster: a JobManager, and TaskManagers that each have a pool of Python workers."""
    log, conf = folder / "job-manager.log", make_dir(folder / "conf") / "config.yaml"
    make_dir(folder / "tmp")
    with ExitStack() as stack:
        rest, rpc = free_port(), free_port()
        conf.write_text(_CONFIG.format(rpc=rpc, rest=rest, slots=slots, folder=folder))
        cluster = Cluster(rest, free_port(), slots, [])
        job_manager = stack.enter_context(started(_job_manager(conf.parent), log=log))
        for number in range(managers):
            task_manager = _task_manager(folder, number, pool_port=cluster.pool_port)
            cluster.managers.append(stack.enter_context(task_manager))
        wait_until(lambda: answers(cluster.rest), job_manager, log=log)
        for task_manager in cluster.managers:
            wait_until(
                lambda: cluster.has(managers),
                task_manager.process,
                log=folder / f"{task_manager.name}.log",
            )
        server = job_server(folder, master=f"localhost:{cluster.rest}")
        cluster.endpoint = stack.enter_context(server)
        yield cluster


def _metrics(accumulators: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """Yield Beam's metrics, which one accumulator of a job contains as JSON."""
    for accumulator in accumulators:
        if accumulator["name"] == "__metricscontainers":
            yield from json.loads(accumulator["value"])["metrics"]["attempted"]


def _whole_number(payload: bytes) -> int:
    """Decode a number in Beam's metrics: seven bits per byte, the lowest first."""
    return sum((byte & 0x7F) << 7 * place for place, byte in enumerate(payload))


def _flink(main: str, *arguments: object, options: Sequence[str], path: str = "") -> list[object]:
    return java(main, *arguments, options=[*_LOGGED, *options], path=path or f"{JARS}/*")


def _job_manager(conf: Path) -> list[object]:
    main = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
    return _flink(main, "--configDir", conf, options=["-Xmx320m", "-XX:MaxMetaspaceSize=192m"])


@contextmanager
def _task_manager(folder: Path, number: int, *, pool_port: int) -> Iterator[Machine]:
    """Yield a TaskManager to which the host name POOL means its own pool."""
    name, log = f"task-manager-{number}", folder / f"task-manager-{number}.log"
    address, hosts = machine_hosts(folder, number)
    main = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
    options = ["-Xmx384m", "-XX:MaxDirectMemorySize=192m", "-XX:MaxMetaspaceSize=256m"]
    command = _flink(
        main, "--configDir", folder / "conf", "-D", f"taskmanager.resource-id={name}",
        options=[*options, f"-Djdk.net.hosts.file={hosts}"],
    )  # fmt: skip
    with (
        worker_pool(folder, number, address=address, port=pool_port) as pool,
        started(command, log=log) as process,
    ):
        yield Machine(name, process, pool)
