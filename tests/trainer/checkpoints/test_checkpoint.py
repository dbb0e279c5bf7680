from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from shards.errors import UserError
from shards.records import to_json
from shards.storage.files import FileEntry, crc32c, size, write_json
from tests.trainer.alone import ALONE
from trainer.checkpoints.checkpoint import (
    BAD_STREAK,
    Checkpoint,
    FileList,
    NoCheckpointError,
    find_common_checkpoint,
    find_later_steps,
    read_checkpoint,
    usable_checkpoint,
)
from trainer.checkpoints.disk import find_disk
from trainer.ranks import AgreedError


def put(
    run: Path,
    step: int,
    *,
    ranks: Sequence[int] = (0,),
    world: int = 1,
    stage: int = 1,
    streak: int = 0,
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
        state={"n": step, BAD_STREAK: streak},
    )
    write_json(folder / f"whole-{ranks[0]:05d}.json", to_json(file_list))
    return folder


def resumed_step(run: Path) -> int:
    """Return the step that a run resumes after."""
    checkpoint = find_common_checkpoint(run, ranks=ALONE, disk=find_disk(run, ALONE))
    assert checkpoint is not None
    return checkpoint.step


def test_the_newest_complete_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for step in (9, 10, 20):
        put(tmp_path, step)
    (tmp_path / "step-30").mkdir()
    assert resumed_step(tmp_path) == 20
    used = f"{tmp_path / 'step-30'} is unfinished\n  {tmp_path / 'step-20'} is used"
    assert used in caplog.text


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


def test_one_by_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in (9, 10):
        put(tmp_path / "run", step)
    (tmp_path / "link").symlink_to(tmp_path / "run" / "step-9")
    monkeypatch.chdir(tmp_path / "run" / "step-9")
    for name in (".", "../../link"):
        found = (
            usable_checkpoint(Path(name)),
            find_common_checkpoint(Path(name), ranks=ALONE, disk=None),
        )
        for checkpoint in found:
            assert checkpoint is not None
            assert checkpoint.folder == tmp_path / "run" / "step-9"
    newest = usable_checkpoint(Path(".."))
    assert newest is not None
    assert newest.folder == Path("../step-10")


def test_of_a_run_the_newest_good_one_is_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for step in (1, 2, 3):
        put(tmp_path, step, streak=3 * (step == 3))
    (tmp_path / "latest").write_text("step-3")

    def opened(path: Path) -> int | None:
        checkpoint = usable_checkpoint(path)
        return checkpoint and checkpoint.step

    assert (opened(tmp_path), opened(tmp_path / "step-3")) == (2, 3)
    (tmp_path / "step-2" / "optim-0.pt").write_bytes(b"optim-0.px" * 10)
    assert opened(tmp_path) == 1
    assert "step-1 is used" in caplog.text
    assert "step-2/optim-0.pt is damaged" in caplog.text
    put(tmp_path, 1, streak=3)
    with pytest.raises(
        UserError, match=r"(?s)none that is complete.*step-3 .*not finite.*is damaged"
    ):
        opened(tmp_path)


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_reported_and_the_one_before_is_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: object, message: str
) -> None:
    put(tmp_path, 1)
    damage(put(tmp_path, 2) / "optim-0.pt")  # type: ignore[operator]  # a table of functions
    assert resumed_step(tmp_path) == 1
    assert message in caplog.text
    (tmp_path / "step-1" / "optim-0.pt").unlink()
    with pytest.raises(UserError, match=r"(?s)none that is complete .*step-2.*step-1.*start anew"):
        find_common_checkpoint(tmp_path, ranks=ALONE, disk=None)


NOTHINGS = {
    "one": ({3: None}, "step-3 is unfinished"),
    "several": ({3: None, 6: None}, "step-6 is unfinished; .*step-3 is unfinished"),
    "bad": ({3: 2}, "step-3 is bad: 2 losses"),
    "both": ({3: 2, 6: None}, "step-6 is unfinished; .*step-3 is bad"),
}


@pytest.mark.parametrize(("steps", "message"), NOTHINGS.values(), ids=NOTHINGS)
def test_nothing_to_resume_from(
    tmp_path: Path, steps: Mapping[int, int | None], message: str
) -> None:
    for step, streak in steps.items():
        folder = put(tmp_path, step, streak=streak or 0)
        if streak is None:
            (folder / "whole-00000.json").unlink()
    with pytest.raises(NoCheckpointError, match=f"no checkpoint to use: .*{message}"):
        find_common_checkpoint(tmp_path, ranks=ALONE, disk=None)
    assert find_later_steps(tmp_path, after=-1, ranks=ALONE) == []
    # A lost file of another is no reason to start over.
    (put(tmp_path, 2) / "optim-0.pt").unlink()
    with pytest.raises(AgreedError, match=r"(?s)none that is complete .*step-2.*is missing"):
        find_common_checkpoint(tmp_path, ranks=ALONE, disk=None)
    assert find_later_steps(tmp_path, after=1, ranks=ALONE) == [2]
    assert find_later_steps(tmp_path, after=2, ranks=ALONE) == []


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
