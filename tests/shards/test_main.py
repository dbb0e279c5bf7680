from pathlib import Path

import pytest

from shards.__main__ import main
from shards.storage.lock import locked


def test_prune_waits_for_nobody(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(dataset):
        assert main(["prune", str(dataset)]) == 2
    assert "is being written by process" in capsys.readouterr().err


def test_verify_of_a_placed_copy(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "disk"
    main(["place", str(dataset), "--nodes", "1,1", "--scatters", "2", "--to", str(to)])
    capsys.readouterr()
    assert main(["verify", str(to)]) == 0
    size = sum(path.stat().st_size for path in to.rglob("*.*") if path.suffix != ".json")
    size -= sum((to / name).stat().st_size for name in (".lock", ".placed"))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"13 files, {size:,} bytes, ")
    assert line.endswith("MB/s: ok; placed here: scatters 0 of 2, 20 files in the whole")
    # A file of another node is checked where there is one, whatever is left of its shard.
    folder = Path("g0001-3f9c12ab", "wudao")
    content = (dataset / folder / "00003.bin").read_bytes()
    (to / folder / "00003.bin").write_bytes(content)
    assert main(["verify", str(to)]) == 0
    (to / folder / "00003.bin").write_bytes(content[1:])
    (to / folder / "00002.idx").unlink()
    capsys.readouterr()
    assert main(["verify", str(to)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in lines[:-1]] == [
        str(to / folder / "00002.idx"),
        str(to / folder / "00003.bin"),
    ]
    assert ": 2 problems; placed here: scatters 0 of 2" in lines[-1]
