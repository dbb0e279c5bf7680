"""The command that installs something where this Python lives: pip's, pipx's or uv's."""

import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from shards.program import PROGRAM

_PIP = re.compile(r"\bpip\s+install\s+(?:'([\w\[\],.-]+)'|([a-z][\w.-]*\w))")
_CACHED = re.compile(r"(archive|environments)-v\d+\Z")
"""Folders of uv's cache in which uvx makes environments."""


def installable(text: str) -> str:
    """Return a text of ours whose `pip install` is the command for where this Python lives.

    That is pipx's or uv's in an environment of theirs, where there is no pip on the path.
    """
    return _PIP.sub(lambda found: _command(found[1] or found[2]) or found[0], text)


def _command(wanted: str) -> str | None:
    """Return what installs a requirement here; None for pip."""
    home = Path(sys.prefix)
    if (home / "pipx_metadata.json").exists():
        return f"pipx inject {shlex.quote(home.name)} {shlex.quote(wanted)}"
    receipt = home / "uv-receipt.toml"
    if receipt.exists():
        return _uv_tool(receipt, wanted)
    if _CACHED.match(home.parent.name) and _extras(wanted):
        return shlex.join(["uvx", "--from", _requirement(_extras(wanted)), PROGRAM])
    return None


def _uv_tool(receipt: Path, wanted: str) -> str:
    """Return the command that installs a tool of uv again, with all that it has and more.

    Args:
        receipt: What uv has noted of it.
        wanted: A package, or an extra of this one, as `corpusmill[train]`.
    """
    import tomllib  # noqa: PLC0415 - seldom needed

    extras, others = [], []
    for entry in tomllib.loads(receipt.read_text("utf-8"))["tool"]["requirements"]:
        if entry["name"] == PROGRAM:
            extras += entry.get("extras", ())
        else:
            others.append(f"--with={entry['name']}")
    if more := _extras(wanted):
        extras += [extra for extra in more if extra not in extras]
    else:
        others.append(f"--with={wanted}")
    return shlex.join(["uv", "tool", "install", _requirement(extras), *others])


def _extras(wanted: str) -> list[str]:
    """Return the extras of this package that a requirement names."""
    found = re.fullmatch(rf"{PROGRAM}\[(.+)\]", wanted)
    return found[1].split(",") if found else []


def _requirement(extras: Sequence[str]) -> str:
    """Return this package with extras, from where it was installed."""
    from importlib import metadata  # noqa: PLC0415 - seldom needed

    name = f"{PROGRAM}[{','.join(extras)}]" if extras else PROGRAM
    origin = json.loads(metadata.distribution(PROGRAM).read_text("direct_url.json") or "{}")
    if "url" not in origin:
        return name
    repository = origin.get("vcs_info", {})
    revision = repository.get("requested_revision")
    kind = f"{repository['vcs']}+" if repository else ""
    return f"{name} @ {kind}{origin['url']}{f'@{revision}' if revision else ''}"
