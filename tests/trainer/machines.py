"""Machines on this machine: network namespaces with addresses of their own, joined by a bridge.

    10.77.0.1  10.77.0.2  10.77.0.3
        a          b          c         each with its own network, processes and folder
        └──────── bridge ─────┘

They are made in namespaces of a process that ends with this one, and nothing of them stays. Needed
are user namespaces and iproute2, no rights.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

LAUNCH = Path(__file__).parents[2] / "trainer" / "launch"
NETWORK = "10.77.0"

_MAKE = f"""
set -e
mount -t tmpfs tmpfs /run
ip link add name joined type bridge
ip link set joined up
number=1
for name in "$@"; do
    ip netns add "$name"
    ip link add name "to-$name" type veth peer name eth0 netns "$name"
    ip link set "to-$name" master joined up
    ip -n "$name" addr add {NETWORK}.$number/24 dev eth0
    ip -n "$name" link set eth0 up
    ip -n "$name" link set lo up
    number=$((number + 1))
done
ip netns exec "$1" unshare --pid --fork --kill-child --mount-proc true
echo ready
cat
"""

RANKS_NEED = {"GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1"}
"""In the environment of every rank."""

_PDSH = """#!/bin/sh
# pdsh -S -f N -w a,b,c COMMAND: run a command on each machine, %n being its number.
hosts=$(echo "$5" | tr , " ")
shift 5
number=0
started=
for host in $hosts; do
    command=$(echo "$*" | sed "s/%n/$number/")
    ip netns exec "$host" sh -c "mount --bind $MACHINES/$host $MACHINES/here && $command" \\
        > "$MACHINES/$host/by-pdsh.txt" 2>&1 &
    started="$started $!"
    number=$((number + 1))
done
code=0
for child in $started; do wait "$child" || code=1; done
exit $code
"""

_SSH = """#!/bin/sh
# ssh -o OPTION … HOST COMMAND
while [ "$1" = -o ]; do shift 2; done
host=$1
shift
exec ip netns exec "$host" sh -c "$*"
"""


@dataclass
class Machine:
    """One of them."""

    name: str
    folder: Path
    ranks: int
    running: "subprocess.Popen[bytes] | None" = None

    def is_up(self) -> bool:
        """Return whether its ranks are at work."""
        return self.running is not None and self.running.poll() is None

    def wait(self) -> int:
        """Wait for the end of its ranks, and return their exit code."""
        assert self.running is not None
        return self.running.wait(600)

    @property
    def output(self) -> str:
        """What its ranks have printed since they were started."""
        paths = (self.folder / name for name in ("output.txt", "by-pdsh.txt"))
        return "".join(path.read_text() for path in paths if path.exists())


@dataclass
class Machines:
    """All of them, while the `with` block runs."""

    folder: Path
    ranks: Sequence[int]
    all: list[Machine] = field(default_factory=list)
    _holder: "subprocess.Popen[str] | None" = None

    def __enter__(self) -> "Machines":
        if missing := [name for name in ("unshare", "nsenter", "ip") if not shutil.which(name)]:
            pytest.skip(f"no network namespaces here: there is no {missing[0]}")
        names = [chr(ord("a") + number) for number in range(len(self.ranks))]
        self._holder = subprocess.Popen(
            ["unshare", "-rnm", "sh", "-c", _MAKE, "sh", *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        assert self._holder.stderr is not None
        if self._holder.stdout.readline() != "ready\n":
            reason = self._holder.stderr.read().strip()
            self.__exit__()
            pytest.skip(f"no network namespaces here: {reason}")
        for name, ranks in zip(names, self.ranks, strict=True):
            (folder := self.folder / name).mkdir(parents=True)
            self.all.append(Machine(name, folder, ranks))
        return self

    def __exit__(self, *_: object) -> None:
        for machine in self.all:
            self.cut_off(machine)
        if self._holder is not None:
            self._holder.communicate()  # its standard input ends, and it with it

    def _inside(self, *command: str) -> list[str]:
        assert self._holder is not None
        spaces = ["--user", "--net", "--mount", "--preserve-credentials"]
        return ["nsenter", "--target", str(self._holder.pid), *spaces, *command]

    def start(self, machine: Machine, *flags: str) -> None:
        """Start the ranks of a machine with torchrun; every machine is to be started."""
        own = {"NODES": len(self.all), "NODE": self.all.index(machine), "GPUS": machine.ranks}
        self._start(machine, "torchrun-nodes.sh", flags, {**own, **RANKS_NEED})

    def start_all(self, *flags: str) -> None:
        """Start the ranks of all machines with DeepSpeed's launcher, from the first."""
        tools = self.folder / "bin"
        tools.mkdir(exist_ok=True)
        for name, text in {"pdsh": _PDSH, "ssh": _SSH}.items():
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        first = self.all[0].folder
        hosts = "".join(f"{machine.name} slots={machine.ranks}\n" for machine in self.all)
        (first / "hosts").write_text(hosts)
        needed = "".join(f"{name}={value}\n" for name, value in RANKS_NEED.items())
        (first / ".deepspeed_env").write_text(needed)
        own = {"HOSTFILE": "hosts", "MACHINES": self.folder}
        self._start(self.all[0], "deepspeed-nodes.sh", flags, own)

    def _start(
        self, machine: Machine, script: str, flags: Sequence[str], own: Mapping[str, object]
    ) -> None:
        """Run a script of trainer/launch on a machine, in a folder that all see under one name."""
        tools = (self.folder / "bin", Path(sys.executable).parent)
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([*map(str, tools), os.environ["PATH"]]),
            "PYTHONPATH": str(LAUNCH.parents[1]),
            "MASTER": f"{NETWORK}.1",
            **{name: str(value) for name, value in own.items()},
        }
        here = self.folder / "here"
        here.mkdir(exist_ok=True)
        # Whoever ends `unshare` ends all processes of the machine, as a power cut does.
        alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        mounted = 'mount --bind "$0" "$1" && cd "$1" && shift && exec "$@"'
        within = ["sh", "-c", mounted, str(machine.folder), str(here)]
        command = [*alone, *within, str(LAUNCH / script), *flags]
        with (machine.folder / "output.txt").open("wb") as output:
            machine.running = subprocess.Popen(
                self._inside("ip", "netns", "exec", machine.name, *command),
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def cut_off(self, machine: Machine) -> None:
        """End all processes of a machine at once."""
        if machine.running is not None:
            machine.running.kill()
            machine.running.wait()

    def received(self, machine: Machine) -> int:
        """Return the bytes that have come to a machine from others."""
        shown = subprocess.run(
            self._inside("ip", "-n", machine.name, "-s", "-j", "link", "show", "eth0"),
            capture_output=True,
            check=True,
        )
        (state,) = json.loads(shown.stdout)
        return int(state["stats64"]["rx"]["bytes"])
