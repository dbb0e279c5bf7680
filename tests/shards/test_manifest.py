from pathlib import Path

from shards.manifest import (
    parse_dataset,
)


def test_parse_dataset(tmp_path: Path) -> None:
    assert parse_dataset("a/b") == (Path("a/b"), None)
    assert parse_dataset("a/b@12") == (Path("a/b"), 12)
    assert parse_dataset("user@host/b") == (Path("user@host/b"), None)
    (tmp_path / "x@3").mkdir()
    assert parse_dataset(tmp_path / "x@3") == (tmp_path / "x@3", None)
    assert parse_dataset(f"{tmp_path}/x@3@1") == (tmp_path / "x@3", 1)
