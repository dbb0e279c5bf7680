"""Commands and worker pools for the engines in Java, with the jars of `make engines`."""

import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.engines.processes import Process, answers, guarded, started, wait_until

ROOT = Path(__file__).parents[2]
POOL = "pool"
"""The host name by which an engine's process reaches the worker pool of its machine."""

_PACKAGES = (
    "lang", "lang.invoke", "lang.reflect", "util", "util.concurrent", "util.concurrent.atomic",
    "nio", "net", "io", "text", "time",
)  # fmt: skip
OPENS = [
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _PACKAGES),
    *(f"--add-opens=java.base/sun.nio.{name}=ALL-UNNAMED" for name in ("ch", "cs")),
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    "--add-opens=java.base/sun.util.calendar=ALL-UNNAMED",
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
]
"""Options that open packages for reflection, because Java 17 closes them."""

# For small machines: these options save memory, and use only the first compiler.
SMALL = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


def java(main: str, *arguments: object, options: Sequence[str], path: str) -> list[object]:
    """Return the command that starts a Java program.

    Args:
        main: The main class.
        arguments: The arguments of the program.
        options: Options of Java, in addition to those of all engines.
        path: The class path.
    """
    return ["java", *OPENS, *SMALL, *options, "-cp", path, main, *arguments]


def joined(paths: Sequence[Path]) -> str:
    """Return the class path that consists of these jars and folders."""
    return os.pathsep.join(map(str, paths))


def make_dir(folder: Path) -> Path:
    """Make a folder, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def machine_hosts(folder: Path, number: int) -> tuple[str, Path]:
    """Return the address of a machine's pool, and a hosts file that maps POOL to the address."""
    address, hosts = f"127.0.0.{2 + number}", folder / f"machine-{number}.hosts"
    hosts.write_text(f"127.0.0.1 localhost {socket.gethostname()}\n{address} {POOL}\n")
    return address, hosts


@dataclass
class Machine:
    """An engine's process that stands for a machine, and the machine's pool of Python workers."""

    name: str
    process: Process
    pool: Process

    def workers(self) -> list[psutil.Process]:
        """Return the machine's Python workers."""
        return guarded(self.pool).children()

    def executors(self) -> list[psutil.Process]:
        """Return the executors of the machine if it is a worker of Spark."""
        return guarded(self.process).children()

    def kill(self) -> None:
        """Kill the engine's process with SIGKILL, but not the Python workers."""
        guarded(self.process).kill()


def cluster_flags(endpoint: str, pool_port: int) -> list[str]:
    """Return the flags for a run on a cluster whose machines each have a worker pool."""
    return [
        "--runner=PortableRunner",
        f"--job_endpoint={endpoint}",
        "--environment_type=EXTERNAL",
        f"--environment_config={POOL}:{pool_port}",
    ]


@contextmanager
def worker_pool(folder: Path, number: int, *, address: str, port: int) -> Iterator[Process]:
    """Yield the pool of Python workers of one machine."""
    program = [sys.executable, Path(__file__).with_name("pool.py"), f"{address}:{port}"]
    log = folder / f"pool-{number}.log"
    with started(program, log=log, env=python_path(), cwd=ROOT) as pool:
        wait_until(lambda: answers(port, address), pool, log=log)
        yield pool


def python_path() -> Mapping[str, str]:
    """Return environment variables by which `python`, the workers' command, is this Python."""
    folder = str(Path(sys.executable).parent)
    paths = os.pathsep.join([folder, os.environ["PATH"]])
    return {**os.environ, "PATH": paths, "PYTHONPATH": str(ROOT)}


def why_missing(jars: Path) -> str:
    """Return the reason why the engine with these jars cannot run here; "" if it can."""
    if not any(jars.glob("*.jar")):
        return f"there are no jars in {jars}: run make engines"
    return "" if shutil.which("java") else "Java is missing"
