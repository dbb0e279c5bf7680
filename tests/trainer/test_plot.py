import sys
from pathlib import Path

import pytest

from shards.console import run_module
from tests.trainer.test_log import write
from trainer import plot
from trainer.log import TRAIN, VALIDATION, read_run_log


def test_a_picture_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    write(tmp_path, 1, 2)
    assert run_module("trainer.plot", [str(tmp_path)]) == 0
    picture = tmp_path / "curves.png"
    assert capsys.readouterr().out == f"{picture}\n"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_curves(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    by_part = plot.curves(read_run_log(tmp_path), TRAIN, "loss")
    assert by_part == {"": ([1, 2], [6.5, 6.0]), "web": ([1, 2], [1.0, 2.0])}
    assert plot.curves(read_run_log(tmp_path), VALIDATION, "loss") == {}


def test_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, 1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run_module("trainer.plot", [str(tmp_path)]) == 2
    assert "pip install 'corpusmill[report]'" in capsys.readouterr().err
