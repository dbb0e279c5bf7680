import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from shards.storage.disk import disk_error
from shards.storage.files import Handle, crc32c
from tests.trainer.alone import ALONE
from tests.trainer.checkpoints.test_checkpoint import put, resumed_step
from trainer.checkpoint import BAD_STREAK, read_list
from trainer.distributed import CollectiveError
from trainer.saver import CheckpointSaver

GOOD: Mapping[str, Any] = {BAD_STREAK: 0}


class FileEngine:
    """DeepSpeed's engine, as far as it writes files."""

    save: Any


class Engine:
    """DeepSpeed's engine, with only one parameter."""

    def __init__(self) -> None:
        self.checkpoint_engine = FileEngine()
        self.weights = torch.zeros(1000)

    def save_checkpoint(self, folder: str, tag: str, **more: Any) -> None:
        (Path(folder) / tag).mkdir(exist_ok=True)
        state = {"module": {"a": self.weights, "b": self.weights[1:]}, **more["client_state"]}
        self.checkpoint_engine.save(state_dict=state, path=str(Path(folder) / tag / "model.pt"))
        (Path(folder) / tag / "offloaded").write_bytes(b"by DeepSpeed itself")

    def zero_optimization_stage(self) -> int:
        return 1


def saver(folder: Path, *, keep: int = 3) -> tuple[Engine, CheckpointSaver]:
    engine = Engine()
    return engine, CheckpointSaver(engine, folder, keep=keep, ranks=ALONE)


def steps(folder: Path) -> list[int]:
    return sorted(int(path.name[5:]) for path in folder.glob("step-*"))


def test_the_list_has_the_checksums_of_all_files(tmp_path: Path) -> None:
    engine, saving = saver(tmp_path)
    saving.save(step=3, state=GOOD)
    engine.weights += 1  # a step that must not affect the checkpoint
    folder = tmp_path / "step-3"
    entries = read_list(folder / "whole-00000.json").files
    assert {name: entry.crc32c for name, entry in entries.items()} == {
        name: crc32c(folder / name) for name in ("model.pt", "offloaded")
    }
    state = torch.load(folder / "model.pt")
    assert not state["module"]["a"].any()
    # The two share memory in the file as they do in the model, which keeps the file small.
    assert state["module"]["a"][1:].data_ptr() == state["module"]["b"].data_ptr()
    assert (tmp_path / "latest").read_text() == "step-3"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "by the test"), "no space left on the disk"),
        (ValueError("no such type"), "ValueError: no such type"),
    ],
)
def test_what_goes_wrong_within_a_file_is_raised_after_deepspeed_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    engine, saving = saver(tmp_path)
    saving.save(step=1, state=GOOD)
    engine.weights = torch.zeros(600_000)
    write = Handle.write

    def fail(handle: Handle, data: Any) -> int:
        if len(data) > 1_000_000:  # torch then ends its archive with smaller writes
            raise error if isinstance(error, ValueError) else disk_error(error, tmp_path / "x")
        return write(handle, data)

    with monkeypatch.context() as patched:
        patched.setattr(Handle, "write", fail)
        with pytest.raises(CollectiveError, match=rf"step-2 was not saved: {told}"):
            saving.save(step=2, state=GOOD)
    assert not list(tmp_path.glob("step-2/*.pt"))
    assert resumed_step(tmp_path) == 1
    saving.save(step=2, state=GOOD)  # the earlier error is forgotten
    assert resumed_step(tmp_path) == 2


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
    (tmp_path / "step-30").mkdir()  # an unfinished checkpoint: the run returned to step 15
    (tmp_path / "step-40" / "optim-0.pt").write_bytes(b"cut")
    _, saving = saver(tmp_path, keep=keep)
    saving.save(step=20, state=GOOD)
    saving.prune()
    assert steps(tmp_path) == expected
    assert resumed_step(tmp_path) == 20
