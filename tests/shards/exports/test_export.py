import errno
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.shards.datasets import tree
from tests.shards.exports.worlds import export


def test_where_links_are_refused_it_copies(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "by the test")

    assert export(world, "olmo", tmp_path / "calm") == 0
    assert any(path.stat().st_nlink > 1 for path in (tmp_path / "calm").rglob("*.npy"))
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    out = tmp_path / "out"
    assert export(world, "olmo", out) == 0
    assert tree(out) == tree(tmp_path / "calm")
    assert all(path.stat().st_nlink == 1 for path in out.rglob("*.npy"))


def test_room_is_asked_for_first(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=1000)
    with patch("shards.exports.export.shutil.disk_usage", return_value=full):
        assert export(world, "numpy", tmp_path / "out") == 2
    assert "takes about 0 MB" in capsys.readouterr().err
    assert not [*tmp_path.rglob("*.npy")]
