import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from shards.errors import UserError
from shards.records import to_json
from shards.storage.files import FileEntry, crc32c, size, write_json
from tests.trainer.alone import ALONE
from trainer.checkpoint import (
    Checkpoint,
    FileList,
    find_common_checkpoint,
    read_checkpoint,
    save,
)
from trainer.disk import find_disk


def put(
    run: Path, step: int, *, ranks: Sequence[int] = (0,), world: int = 1, stage: int = 1
) -> Path:
    """Write the part of a checkpoint that some ranks hold."""
    folder = run / f"step-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"optim-{rank}.pt" for rank in ranks]
    for name in names:
        (folder / name).write_bytes(name.encode() * 10)
    files: Mapping[str, FileEntry] = {
        name: FileEntry(bytes=size(folder / name), crc32c=crc32c(folder / name)) for name in names
    }
    file_list = FileList(
        version=1,
        step=step,
        ranks=tuple(ranks),
        world=world,
        stage=stage,
        files=files,
        state={"n": step},
    )
    write_json(folder / f"whole-{ranks[0]:05d}.json", to_json(file_list))
    return folder


def test_the_newest_complete_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for step in (9, 10, 20):
        put(tmp_path, step)
    (tmp_path / "step-30").mkdir()
    checkpoint = find_common_checkpoint(tmp_path, ranks=ALONE, disk=None)
    assert checkpoint is not None
    assert (checkpoint.step, checkpoint.tag, checkpoint.state) == (20, "step-20", {"n": 20})
    assert f"step-30 is skipped: {tmp_path / 'step-30'} is unfinished" in caplog.text


def test_there_is_none(tmp_path: Path) -> None:
    assert find_common_checkpoint(tmp_path, ranks=ALONE, disk=None) is None
    assert find_common_checkpoint(tmp_path / "nowhere", ranks=ALONE, disk=None) is None


def test_one_by_name(tmp_path: Path) -> None:
    for step in (10, 20):
        put(tmp_path, step)
    checkpoint = find_common_checkpoint(tmp_path / "step-10", ranks=ALONE, disk=None)
    assert checkpoint is not None
    assert checkpoint.step == 10


DAMAGES = {
    "bits": (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"!"), "is damaged: its check"),
    "size": (lambda path: path.write_bytes(b"short"), "is missing or cut short"),
    "lost": (lambda path: path.unlink(), "is missing or cut short"),
    "list": (
        lambda path: (path.parent / "whole-00000.json").write_text("{}"),
        "is not the list",
    ),
    "no json": (lambda path: (path.parent / "whole-00000.json").write_text("{"), "no valid JSON"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_reported_and_the_one_before_is_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: object, message: str
) -> None:
    put(tmp_path, 1)
    damage(put(tmp_path, 2) / "optim-0.pt")  # type: ignore[operator]  # a table of functions
    checkpoint = find_common_checkpoint(tmp_path, ranks=ALONE, disk=find_disk(tmp_path, ALONE))
    assert checkpoint is not None
    assert checkpoint.step == 1
    assert message in caplog.text
    (tmp_path / "step-1" / "optim-0.pt").unlink()
    with pytest.raises(UserError, match=r"(?s)none that is complete .*step-2 .*step-1 .*--save"):
        find_common_checkpoint(tmp_path, ranks=ALONE, disk=None)


class Engine:
    """Writes checkpoints as DeepSpeed's engine does."""

    def save_checkpoint(self, folder: str, tag: str, **_: object) -> None:
        (Path(folder) / tag).mkdir()
        (Path(folder) / tag / "optim-0.pt").write_bytes(b"new")

    def zero_optimization_stage(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("keep", "expected"),
    [(1, [20, 30, 40]), (2, [10, 15, 20, 30, 40]), (9, [9, 10, 15, 20, 30, 40])],
)
def test_only_whole_ones_up_to_the_new_one_are_kept(
    tmp_path: Path, keep: int, expected: list[int]
) -> None:
    for step in (9, 10, 15, 40):
        put(tmp_path, step)
    (tmp_path / "step-15" / "whole-00000.json").unlink()
    (tmp_path / "step-30").mkdir()  # unfinished: the run went back to step 15
    (tmp_path / "step-40" / "optim-0.pt").write_bytes(b"cut")
    disk = find_disk(tmp_path, ALONE)
    save(Engine(), disk, step=20, state={}, keep=keep, ranks=ALONE)
    assert sorted(int(path.name[5:]) for path in tmp_path.glob("step-*")) == expected
    checkpoint = find_common_checkpoint(tmp_path, ranks=ALONE, disk=disk)
    assert checkpoint is not None
    assert checkpoint.step == 20


def test_what_a_rank_needs(tmp_path: Path) -> None:
    folder = put(tmp_path, 5, ranks=(0, 1), world=4)
    assert isinstance(read_checkpoint(folder, rank=1, world=4), Checkpoint)
    assert "lacks what rank 2 of 4 wrote" in str(read_checkpoint(folder, rank=2, world=4))
    # Another number of ranks needs all of it, as when a node's files were copied to the others'.
    assert "lacks what rank 2 of 4 wrote" in str(read_checkpoint(folder, rank=0, world=1))
    put(tmp_path, 5, ranks=(2, 3), world=4)
    checkpoint = read_checkpoint(folder, rank=0, world=1)
    assert isinstance(checkpoint, Checkpoint)
    assert sorted(checkpoint.files) == [f"optim-{rank}.pt" for rank in range(4)]


def test_lists_are_json(tmp_path: Path) -> None:
    folder = put(tmp_path, 7)
    content = json.loads((folder / "whole-00000.json").read_text())
    assert content["ranks"] == [0]
    assert content["files"]["optim-0.pt"]["bytes"] == 100
