"""The commands of README's sections are run, and say what the page shows."""

import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import job

ROOT = Path(__file__).parents[1]
GROWING = {"README.md": "## A corpus that grows", "README.zh.md": "## 不断增长的语料"}
AFTERWARDS = {"README.md": "## After training", "README.zh.md": "## 训练之后"}
MAIN_JOB = (
    "python -m pipelines.wudao --runner=DirectRunner --output build/wudao",
    "python -m trainer.train --data build/wudao --model tiny --length 128 --batch-size 16 "
    "--max-steps 30 --lr 2e-3 --log-every 5 --eval-every 15 --save build/run",
)
"""Of make run, which comes before."""

_VARYING = re.compile(
    r"((?:loss|accuracy|lr|grad norm|ms/step|tokens/s|lag|documents/s|files/s) )[\d.,e-]+|"
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
    """Return the pattern of a text whose measured figures may differ."""
    pattern, end = "", 0
    for found in _VARYING.finditer(text):
        pattern += re.escape(text[end : found.start()] + (found[1] or "")) + r"[\d.,:e-]+(?: s)?"
        end = found.end()
    return pattern + re.escape(text[end:])


def commands(page: str, headings: Mapping[str, str] = GROWING) -> list[Command]:
    """Return the commands of a section, in order."""
    text = (ROOT / page).read_text("utf-8")
    section = text.partition(f"\n{headings[page]}\n")[2].partition("\n## ")[0]
    found: list[Command] = []
    for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL):
        for part in block.removeprefix("$ ").split("\n$ "):
            text, *shown = re.sub(r" \\\n", " ", part).rstrip("\n").split("\n")
            found.append(Command(text, tuple(shown)))
    return found


def run(command: Command, folder: Path) -> str:
    """Return what a command says on both of its channels, run where the page means it to be."""
    output = folder.with_name(f"{folder.name}.txt")
    words = shlex.split(command.text)
    if words[:2] == ["python", "-m"]:
        wing = words[2].partition(".")[0]
        code = job.run(wing, job.Job(words[2:], str(folder), outputs=[str(output)] * 2))
    else:
        with output.open("w") as file:
            done = subprocess.run(
                ["bash", "-c", command.text], cwd=folder, stdout=file, stderr=file, check=False
            )
        code = done.returncode
    said = output.read_text("utf-8")
    assert code == 0, f"{command.text}\n{said}"
    return said


def make_place(folder: Path) -> Path:
    """Make a folder look like a checkout as far as the commands can tell."""
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "sample").symlink_to(ROOT / "pipelines" / "sample")
    return folder


@pytest.mark.parametrize("headings", [GROWING, AFTERWARDS], ids=["growing", "afterwards"])
def test_both_pages_have_the_same_commands(headings: Mapping[str, str]) -> None:
    english, chinese = (commands(page, headings) for page in headings)
    assert english == chinese
    assert len(english) >= 4


@pytest.mark.slow
def test_every_command_says_what_the_page_shows(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    for command in commands("README.md"):
        command.check(run(command, place))
    page = (place / "build" / "news" / "report.html").read_text("utf-8")
    assert '<section id="generations">' in page
    assert "The dataset came in 3 generations." in page


@pytest.mark.slow
def test_what_is_done_with_a_model_says_what_the_page_shows(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    for text in MAIN_JOB:
        run(Command(text, ()), place)
    for command in commands("README.md", AFTERWARDS):
        command.check(run(command, place))
