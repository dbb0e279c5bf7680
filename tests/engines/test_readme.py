"""The watch of README's corpus that grows, on Prism."""

import os
from pathlib import Path

import pytest

from tests.engines.conftest import PRISM
from tests.test_readme import commands, make_place, run

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_the_watch_says_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not PRISM.exists():
        pytest.skip(f"{PRISM} is missing: run make engines")
    monkeypatch.setenv("PATH", f"{PRISM.parent}{os.pathsep}{os.environ['PATH']}")
    place = make_place(tmp_path)
    for command in commands("README.md"):
        command.check(run(command, place))
        if " --watch " in command.text:
            return
    raise AssertionError
