"""The section on a corpus that grows: each of its commands is run, and says what the page shows."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEADINGS = {"README.md": "## A corpus that grows", "README.zh.md": "## 不断增长的语料"}
PRISM = ROOT / ".engines" / "bin" / "prism"

_VARYING = re.compile(
    r"((?:loss|accuracy|lr|grad norm|tokens/s|lag|documents/s|files/s) )[\d.,e-]+|"
    r"\b\d+:\d\d\b|\b[\d.]+ s\b"
)
"""What another machine measures otherwise, or computes with other last bits."""


@dataclass(frozen=True)
class Command:
    """A command of the page and what it shows of the output."""

    text: str
    shown: tuple[str, ...]

    def check(self, output: str) -> None:
        """Check that the output is what the page shows: … stands for anything."""
        lines = [
            ".*" if line == "…" else "[^\n]*".join(map(_pattern, line.split("…")))
            for line in self.shown
        ]
        assert re.fullmatch("\n?".join(lines) + "\n?", output, re.DOTALL), (
            f"{self.text}\nshows\n{chr(10).join(self.shown)}\nand says\n{output}"
        )


def _pattern(text: str) -> str:
    """Return the pattern of a text whose measured figures may differ."""
    pattern, end = "", 0
    for found in _VARYING.finditer(text):
        pattern += re.escape(text[end : found.start()] + (found[1] or "")) + r"[\d.,:e-]+(?: s)?"
        end = found.end()
    return pattern + re.escape(text[end:])


def commands(page: str) -> list[Command]:
    """Return the commands of the section, in order."""
    text = (ROOT / page).read_text("utf-8")
    section = text.partition(f"\n{HEADINGS[page]}\n")[2].partition("\n## ")[0]
    found: list[Command] = []
    for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL):
        for part in block.removeprefix("$ ").split("\n$ "):
            text, *shown = re.sub(r" \\\n", " ", part).rstrip("\n").split("\n")
            found.append(Command(text, tuple(shown)))
    return found


def run(command: Command, folder: Path) -> str:
    """Return what a command says on both of its channels, run where the page means it to be."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-c", command.text],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{command.text}\n{done.stdout}"
    return done.stdout


def prepare(folder: Path) -> Path:
    """Return the folder, which looks like a checkout as far as the commands can tell."""
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "sample").symlink_to(ROOT / "pipelines" / "sample")
    (folder / ".engines").symlink_to(ROOT / ".engines")
    return folder
