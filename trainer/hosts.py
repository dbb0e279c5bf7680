"""The machines of DeepSpeed's launcher: read from its hostfile, and each tried before the start.

    hostfile  ──▶  NAME slots=N …  ──▶  --include, --exclude  ──▶  pdsh here, ssh to each of them

By itself the launcher answers a wrong line, a machine that ssh does not reach and a missing pdsh
with a traceback, goes on alone where the hostfile is not found, and where the folder is missing on
a machine starts its ranks elsewhere.
"""

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from shards.command import Parser
from shards.errors import UserError

DEFAULT = Path("/job/hostfile")
"""What DeepSpeed reads without --hostfile, where it exists."""

_HOST = re.compile(r"(\S+)\s+slots=(\d+)(?!\S)")
_ANSWER_S, _CONNECT_S = 30, 10
_AT_ONCE = 32
_SHOWN = 5
_NO_FOLDER, _NO_PYTHON = 91, 92
"""Exit codes of the question that each machine is asked; ssh itself has 255."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """A machine, as a line of the hostfile names it."""

    name: str
    slots: int
    """Its GPUs."""
    line: int
    """From 1."""


def check_hosts(arguments: Sequence[str], *, default: Path = DEFAULT) -> None:
    """Check that the launcher can start ranks on the machines that its flags name.

    Args:
        arguments: Of DeepSpeed's launcher, the script and its flags included.
        default: The hostfile if the flags name none.

    Raises:
        UserError: There is no such hostfile, a line of it is wrong, pdsh is missing, or a machine
            cannot be reached, lacks this folder or lacks this Python.
    """
    options = _options(arguments)
    path = options.hostfile or (default if default.exists() else None)
    if path is None:
        return
    hosts = _chosen(read_hostfile(path), options, path)
    if options.no_ssh or options.no_ssh_check:
        return
    if options.launcher.lower() == "pdsh" and (len(hosts) > 1 or options.force_multi):
        _check_programs(len(hosts))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        reasons = pool.map(lambda host: _problem(host, options.ssh_port), hosts)
    problems = [
        f"{host.name} ({path}:{host.line}) {reason}"
        for host, reason in zip(hosts, reasons, strict=True)
        if reason
    ]
    if problems:
        rest = f"; and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
        raise UserError(
            f"{len(problems):,} of {len(hosts):,} machines cannot start their ranks: "
            f"{'; '.join(problems[:_SHOWN])}{rest}. Every machine needs ssh from here without a "
            "password, and this folder with its Python at the same path (docs/multi-node.md). "
            "torchrun-nodes.sh, started on each machine, needs no ssh; one machine alone needs no "
            "hostfile."
        )


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the launcher's flags that say which machines it starts, and how it reaches them."""
    parser = Parser(add_help=False)
    parser.add_argument("-H", "--hostfile", type=Path)
    parser.add_argument("-i", "--include", default="")
    parser.add_argument("-e", "--exclude", default="")
    parser.add_argument("--num_nodes", type=int, default=-1)
    parser.add_argument("--launcher", default="pdsh")
    parser.add_argument("--ssh_port", type=int)
    for flag in ("--no_ssh", "--no_ssh_check", "--force_multi"):
        parser.add_argument(flag, action="store_true")
    ends = (i for i, word in enumerate(arguments) if word == "--module" or word.endswith(".py"))
    own = arguments[: next(ends, len(arguments))]
    return parser.parse_known_args(list(own))[0]


def read_hostfile(path: Path) -> list[Host]:
    """Return the machines of a hostfile, in its order.

    Raises:
        UserError: It cannot be read, names none, one twice, or a line is something else.
    """
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError as error:
        raise UserError(
            f"--hostfile {path} cannot be read: {error.strerror}. Without it DeepSpeed's launcher "
            "would start on this machine alone."
        ) from error
    hosts: dict[str, Host] = {}
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line.startswith("#"):
            continue
        host = _host(line, number, path)
        if host.name in hosts:
            raise UserError(
                f"{path}:{number} names {host.name} again, which stands in line "
                f"{hosts[host.name].line}: keep one of them, with all its GPUs."
            )
        hosts[host.name] = host
    if not hosts:
        raise UserError(f"{path} names no machine: expected lines such as node-a slots=8.")
    return list(hosts.values())


def _host(line: str, number: int, path: Path) -> Host:
    found = _HOST.match(line)
    if found is None or int(found[2]) == 0:
        name = line.split(maxsplit=1)[0]
        raise UserError(
            f"{path}:{number} is {line!r}: expected the machine's name for ssh, then slots= (with "
            f"an s) and how many GPUs it has, as {name} slots=8."
        )
    return Host(name=found[1], slots=int(found[2]), line=number)


def _chosen(hosts: Sequence[Host], options: argparse.Namespace, path: Path) -> list[Host]:
    """Return the machines that --include, --exclude and --num_nodes leave."""
    included, excluded = _named(options.include), _named(options.exclude)
    known = {host.name for host in hosts}
    for name in (*included, *excluded):
        if name not in known:
            raise UserError(
                f"{'--include' if included else '--exclude'} names {name}, which is not in {path}; "
                f"it has {', '.join(sorted(known))}."
            )
    chosen = [
        host
        for host in hosts
        if (not included or host.name in included) and excluded.get(host.name) != ""
    ]
    return chosen[: options.num_nodes] if options.num_nodes > 0 else chosen


def _named(text: str) -> Mapping[str, str]:
    """Return the machines of NAME[:GPU,GPU]@NAME… with their GPUs as text, "" for all."""
    pairs = (part.partition(":") for part in text.split("@") if part)
    return {name: gpus for name, _, gpus in pairs}


def _check_programs(num_hosts: int) -> None:
    if shutil.which("pdsh") is None:
        raise UserError(
            f"DeepSpeed's launcher starts the ranks of {num_hosts:,} machines by pdsh, which is "
            "not on this one: apt-get install pdsh, or start torchrun-nodes.sh on each machine."
        )


def _problem(host: Host, port: int | None) -> str | None:
    """Return why a machine cannot start ranks, None if it can."""
    folder, python = shlex.quote(str(Path.cwd())), shlex.quote(sys.executable)
    asked = f"cd {folder} || exit {_NO_FOLDER}; test -x {python} || exit {_NO_PYTHON}"
    command = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_CONNECT_S}"]
    command += [] if port is None else ["-p", str(port)]
    command += [host.name, f"sh -c {shlex.quote(asked)}"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_S,
            check=False,
        )
    except FileNotFoundError:
        return "cannot be reached: there is no ssh on this machine (apt-get install ssh)"
    except subprocess.TimeoutExpired:
        return f"did not answer ssh within {_ANSWER_S} s"
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    reasons = {
        0: None,
        _NO_FOLDER: f"has no folder {Path.cwd()}",
        _NO_PYTHON: f"has no Python at {sys.executable}",
    }
    last = said[-1].rstrip(".") if said else f"it ended with code {done.returncode}"
    return reasons.get(done.returncode, f"does not answer ssh: {last}")
