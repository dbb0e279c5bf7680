"""Runs README's commands and Python code from top to bottom, and checks the output."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import forks
from tests.python import ROOT, python

PAGES = ("README.md", "README.zh.md")
_OF_THE_CHECKOUT = {"git", "make"}
"""Programs whose commands make a checkout, install it, or run the Makefile."""
_OF_CLUSTERS = {"deepspeed", "torchrun"}
"""Programs whose commands need several GPUs."""

_CONSOLE = (
    sys.executable,
    "-c",
    "import sys; from shards.console import main; sys.exit(main())",
)
"""Runs the script `corpusmill`, which by itself cannot start in an environment that was moved."""

_VARYING = re.compile(
    r"((?:loss|accuracy|lr|grad norm|ms/step|tokens/s|lag|documents/s|files/s) )[\d.,e-]+|"
    r"\b\d+:\d\d\b|\b[\d.]+ s\b"
)
"""Figures that differ between machines, because the speed or the last bits of a sum differ."""


@dataclass(frozen=True)
class Command:
    """A command of the page, and the output that the page shows."""

    text: str
    shown: tuple[str, ...]

    def check(self, output: str) -> None:
        """Check the output if the page shows any; there, … stands for any text."""
        if not self.shown:
            return
        wanted = "".join(
            r"(?:[^\n]*\n)*"
            if line == "…"
            else r"[^\n]*".join(map(_pattern, line.split("…"))) + r"\n"
            for line in self.shown
        )
        assert re.fullmatch(wanted, output), (
            f"{self.text}\nshows\n{chr(10).join(self.shown)}\nand says\n{output}"
        )


def _pattern(text: str) -> str:
    """Return a pattern for a text in which measured figures may differ."""
    pattern, end = "", 0
    for found in _VARYING.finditer(text):
        pattern += re.escape(text[end : found.start()] + (found[1] or "")) + r"[\d.,:e-]+(?: s)?"
        end = found.end()
    return pattern + re.escape(text[end:])


def main_job() -> list[str]:
    """Return the commands of `make run`."""
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    (recipe,) = re.findall(r"^run: .*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    return [" ".join(line.split()).removeprefix("$(BIN)/") for line in recipe.splitlines()]


def commands(page: str, heading: str = "") -> list[Command]:
    """Return the commands of a page, or of one of its sections, in order."""
    text = (ROOT / page).read_text("utf-8")
    if heading:
        text = text.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    found: list[Command] = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in block.removeprefix("$ ").split("\n$ "):
            text, *shown = re.sub(r" \\\n", " ", part).rstrip("\n").split("\n")
            found.append(Command(text, tuple(shown)))
    return found


def run(command: Command, folder: Path) -> str:
    """Run a command in a folder, and return its standard output and error."""
    output = folder.with_name(f"{folder.name}.txt")
    words = shlex.split(command.text)
    if words[:2] == ["python", "-m"]:
        package = words[2].partition(".")[0]
        code = forks.run(package, forks.Job(words[2:], str(folder), outputs=[str(output)] * 2))
    else:
        console = words[0] == "corpusmill"
        with output.open("w") as file:
            done = subprocess.run(
                [*_CONSOLE, *words[1:]] if console else ["bash", "-c", command.text],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=file,
                stderr=file,
                check=False,
            )
        code = done.returncode
    said = output.read_text("utf-8")
    assert code == 0, f"{command.text}\n{said}"
    return said


def make_place(folder: Path) -> Path:
    """Copy to a folder the files of a checkout that the commands need."""
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "sample").symlink_to(ROOT / "pipelines" / "sample")
    return folder


def test_both_pages_have_the_same_commands() -> None:
    english, chinese = map(commands, PAGES)
    assert english == chinese
    assert len(english) >= 16


@pytest.mark.slow
def test_the_commands_of_the_page_run_one_after_the_other(tmp_path: Path) -> None:
    """All commands run in one folder, in the order in which the page has them."""
    place = make_place(tmp_path)
    programs = set()
    for command in commands("README.md"):
        programs.add(program := command.text.split()[0])
        if command.text == "make run":
            for text in main_job():
                run(Command(text, ()), place)
        elif program not in _OF_THE_CHECKOUT | _OF_CLUSTERS:
            command.check(run(command, place))
    assert programs >= _OF_THE_CHECKOUT | _OF_CLUSTERS | {"corpusmill", "python"}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 2
    script = "\n".join(["model = lambda *tensors: print(*tensors[0].shape)", *blocks])
    printed = python("-c", script, at=place).stdout
    shown = re.findall(r"^# (.*)$", script, re.MULTILINE)
    assert len(shown) == 1
    assert printed.splitlines() == ["8 512"] * 10 + shown
    page = (place / "build" / "news" / "report.html").read_text("utf-8")
    assert "This dataset has 3 generations." in page
