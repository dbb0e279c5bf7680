import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from shards.commands import progress
from shards.commands.output import print_line
from shards.commands.progress import track_files

FIRST, SECOND, LAST = (
    "copy  40 % | 4.0 MB/s | ETA 0:15",
    "copy  70 % | 3.5 MB/s | ETA 0:08",
    "copy 100 % | 3.3 MB/s | 0:30",
)


class Clock:
    """A clock whose time passes only when a test advances it."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def copied(clock: Clock, *, seconds: float) -> list[str]:
    """Copy three files, each in some seconds, and return the files' names."""
    sizes = {"a": 40_000_000, "b": 30_000_000, "c": 30_000_000}
    files = [(name, SimpleNamespace(bytes=size)) for name, size in sizes.items()]
    names = []
    for name, _ in track_files("copy", files):
        if name == "b":
            print_line("b is odd")
        clock.now += seconds
        names.append(name)
    return names


@pytest.mark.parametrize(
    ("stream", "seconds", "written"),
    [
        (Terminal(), 10, f"\r\033[K{FIRST}\r\033[Kb is odd\n\r\033[K{SECOND}\r\033[K{LAST}"
         f"\r\033[K{LAST}\n"),
        (io.StringIO(), 10, f"{FIRST}\nb is odd\n{SECOND}\n{LAST}\n"),
        (Terminal(), 0.3, "b is odd\n"),  # short work shows no progress
        (io.StringIO(), 3, "b is odd\n"),
    ],
)  # fmt: skip
def test_files_are_counted(
    stream: io.StringIO,
    seconds: float,
    written: str,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any output during the work replaces the line of progress."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdout", stream)
    assert copied(clock, seconds=seconds) == ["a", "b", "c"]
    assert stream.getvalue() == written


def test_in_a_notebook_a_bar_belongs_to_the_cell(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=1)
    shown: list[dict[str, str]] = []
    handle = SimpleNamespace(update=lambda bar, **_: shown.append(bar))
    display: Any = ModuleType("IPython.display")
    display.display = lambda bar, **_: (shown.append(bar), handle)[1]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert progress.Display().is_notebook
    assert not progress.Display(Terminal()).is_notebook
    copied(clock, seconds=10)
    assert [bar["text/plain"] for bar in shown] == [FIRST, SECOND, LAST, LAST]
    assert (
        shown[0]["text/html"] == f'<progress value="40" max="100"></progress> <code>{FIRST}</code>'
    )
