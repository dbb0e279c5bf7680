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

LAUNCHER = Path(__file__).parents[2] / "trainer" / "launch" / "torchrun-nodes.sh"
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
echo ready
cat
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
        return (self.folder / "output.txt").read_text()


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

    def start(self, machine: Machine, *flags: str, environment: Mapping[str, str]) -> None:
        """Start the ranks of a machine, as the page on several machines says."""
        own = {
            **os.environ,
            **environment,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(LAUNCHER.parents[2]),
            "MASTER": f"{NETWORK}.1",
            "NODES": str(len(self.all)),
            "NODE": str(self.all.index(machine)),
            "GPUS": str(machine.ranks),
            "GLOO_SOCKET_IFNAME": "eth0",
        }
        # Whoever ends `unshare` ends all processes of the machine, as a power cut does.
        alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        here = ["sh", "-c", 'cd "$0" && exec "$@"', str(machine.folder)]
        command = [*alone, *here, str(LAUNCHER), *flags]
        with (machine.folder / "output.txt").open("wb") as output:
            machine.running = subprocess.Popen(
                self._inside("ip", "netns", "exec", machine.name, *command),
                env=own,
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
