from collections.abc import Mapping
from pathlib import Path

import pytest

from shards.errors import UserError
from shards.records import to_json
from shards.storage.files import FileEntry, crc32c, file_size, write_json
from tests.pipelines.privileges import without_privileges
from tests.trainer.alone import ALONE
from trainer.checkpoint import (
    BAD_STREAK,
    VERSION,
    FileList,
    NoCheckpointError,
    find_checkpoint,
    find_later_steps,
    usable_checkpoint,
)
from trainer.distributed import CollectiveError


def put(
    run: Path,
    step: int,
    *,
    world: int = 1,
    stage: int = 1,
    streak: int = 0,
) -> Path:
    """Write a checkpoint, and return its folder."""
    folder = run / f"step-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"optim-{rank}.pt" for rank in range(world)]
    for name in names:
        (folder / name).write_bytes(name.encode() * 10)
    files: Mapping[str, FileEntry] = {
        name: FileEntry(bytes=file_size(folder / name), crc32c=crc32c(folder / name))
        for name in names
    }
    file_list = FileList(
        version=VERSION,
        step=step,
        world=world,
        stage=stage,
        files=files,
        state={"n": step, BAD_STREAK: streak},
    )
    write_json(folder / "whole-00000.json", to_json(file_list))
    return folder


def resumed_step(run: Path) -> int:
    """Return the step after which a run resumes."""
    checkpoint = find_checkpoint(run, ranks=ALONE)
    assert checkpoint is not None
    return checkpoint.step


def test_one_by_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in (9, 10):
        put(tmp_path / "run", step)
    (tmp_path / "link").symlink_to(tmp_path / "run" / "step-9")
    monkeypatch.chdir(tmp_path / "run" / "step-9")
    for name in (".", "../../link"):
        found = (
            usable_checkpoint(Path(name)),
            find_checkpoint(Path(name), ranks=ALONE),
        )
        for checkpoint in found:
            assert checkpoint is not None
            assert checkpoint.folder == tmp_path / "run" / "step-9"
    newest = usable_checkpoint(Path(".."))
    assert newest is not None
    assert newest.folder == Path("../step-10")


def test_nothing_to_resume_from(tmp_path: Path) -> None:
    put(tmp_path, 3, streak=2)
    (put(tmp_path, 6) / "whole-00000.json").unlink()
    told = r"(?s)none is usable:.*step-6 is unfinished.*step-3 is bad"
    with pytest.raises(CollectiveError, match=told):
        find_checkpoint(tmp_path, ranks=ALONE)
    (tmp_path / "step-3" / "whole-00000.json").unlink()
    with pytest.raises(NoCheckpointError, match=r"no usable checkpoint.*step-6 is.*; .*step-3 is"):
        find_checkpoint(tmp_path, ranks=ALONE)
    put(tmp_path, 3, streak=2)
    assert find_later_steps(tmp_path, after=-1) == []
    # The loss of a different checkpoint's file is no reason to start over.
    (put(tmp_path, 2) / "optim-0.pt").unlink()
    with pytest.raises(CollectiveError, match=r"(?s)none is usable:.*step-2.*is missing"):
        find_checkpoint(tmp_path, ranks=ALONE)
    assert find_later_steps(tmp_path, after=1) == [2]
    assert find_later_steps(tmp_path, after=2) == []


@pytest.mark.parametrize("closed", [".", "step-6", "step-6/whole-00000.json"])
def test_a_folder_that_cannot_be_looked_at_is_not_taken_for_unfinished(
    tmp_path: Path, closed: str
) -> None:
    for step in (3, 6):
        put(tmp_path, step)
    place = tmp_path / closed
    place.chmod(0)
    try:
        with without_privileges(), pytest.raises(UserError, match="Permission denied"):
            find_checkpoint(tmp_path, ranks=ALONE)
    finally:
        place.chmod(0o755)
