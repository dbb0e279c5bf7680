import errno
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from shards.errors import UserError
from shards.storage.disk import explain
from shards.storage.files import Handle, crc32c
from tests.trainer.alone import ALONE
from tests.trainer.checkpoints.test_checkpoint import put, resumed_step
from trainer.checkpoints import writer
from trainer.checkpoints.checkpoint import BAD_STREAK, read_list
from trainer.checkpoints.disk import find_disk
from trainer.checkpoints.saver import Saver, completed_on_error
from trainer.ranks import AgreedError

GOOD: Mapping[str, Any] = {BAD_STREAK: 0}


class FileEngine:
    """DeepSpeed's, as far as it writes files."""

    save: Any


class Engine:
    """DeepSpeed's, with one parameter."""

    def __init__(self) -> None:
        self.checkpoint_engine = FileEngine()
        self.weights = torch.zeros(1000)

    def save_checkpoint(self, folder: str, tag: str, **more: Any) -> None:
        (Path(folder) / tag).mkdir()
        state = {"module": {"a": self.weights, "b": self.weights[1:]}, **more["client_state"]}
        self.checkpoint_engine.save(state_dict=state, path=str(Path(folder) / tag / "model.pt"))
        (Path(folder) / tag / "offloaded").write_bytes(b"by DeepSpeed itself")

    def zero_optimization_stage(self) -> int:
        return 1


def saver(folder: Path, *, keep: int = 3) -> tuple[Engine, Saver]:
    engine = Engine()
    return engine, Saver(engine, find_disk(folder, ALONE), keep=keep, ranks=ALONE)


def saved(saving: Saver, step: int) -> None:
    saving.save(step=step, state=GOOD)
    saving.finish(bad_streak=0)


def steps(folder: Path) -> list[int]:
    return sorted(int(path.name[5:]) for path in folder.glob("step-*"))


def test_training_goes_on_while_a_checkpoint_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, saving = saver(tmp_path)
    gate = threading.Event()
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: gate.wait(60) and fsync(number))
    saving.save(step=3, state=GOOD)
    engine.weights += 1  # a step, of which the checkpoint must know nothing
    saving.advance(bad_streak=0)
    folder = tmp_path / "step-3"
    assert not list(folder.glob("whole-*"))
    gate.set()
    saving.finish(bad_streak=0)
    entries = read_list(folder / "whole-00000.json").files
    assert {name: entry.crc32c for name, entry in entries.items()} == {
        name: crc32c(folder / name) for name in ("model.pt", "offloaded")
    }
    state = torch.load(folder / "model.pt")
    assert not state["module"]["a"].any()
    # The two share memory in the file as in the model, which keeps it small.
    assert state["module"]["a"][1:].data_ptr() == state["module"]["b"].data_ptr()
    assert (tmp_path / "latest").read_text() == "step-3"


def test_without_memory_training_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, saving = saver(tmp_path)
    saved(saving, 2)
    monkeypatch.setattr(writer, "free_memory", lambda: 1000)
    saving.save(step=3, state=GOOD)
    assert list(tmp_path.glob("step-3/whole-*"))
    # Copied or not, it is the same file but for the step.
    sizes = {path.stat().st_size for path in tmp_path.glob("step-*/model.pt")}
    assert len(sizes) == 1
    assert torch.equal(torch.load(tmp_path / "step-3/model.pt")["module"]["a"], engine.weights)


@pytest.mark.parametrize("in_background", [True, False])
def test_a_disk_that_is_full_within_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_background: bool
) -> None:
    engine, saving = saver(tmp_path)
    engine.weights = torch.zeros(600_000)
    write = Handle.write

    def full(handle: Handle, data: Any) -> int:
        if len(data) > 1_000_000:  # torch ends its archive after that, with less
            raise explain(OSError(errno.ENOSPC, "by the test"), tmp_path / "x")
        return write(handle, data)

    monkeypatch.setattr(Handle, "write", full)
    if not in_background:
        monkeypatch.setattr(writer, "free_memory", lambda: 0)

    with pytest.raises(UserError, match=r"step-2 was not saved: no space left on the disk"):
        saved(saving, 2)
    assert not list(tmp_path.glob("step-2/*.pt"))


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
    _, saving = saver(tmp_path, keep=keep)
    saved(saving, 20)
    assert steps(tmp_path) == expected
    assert resumed_step(tmp_path) == 20


def test_what_is_being_written_is_completed_when_all_ranks_fail(tmp_path: Path) -> None:
    _, saving = saver(tmp_path)
    told = pytest.raises(AgreedError, match=r"^no such data\.$")
    with told, completed_on_error(lambda: saving.finish(bad_streak=0)):
        saving.save(step=3, state=GOOD)
        raise AgreedError("no such data.")
    assert list(tmp_path.glob("step-3/whole-*"))

    def fail() -> None:
        raise AgreedError("no room.")

    told = pytest.raises(AgreedError, match=r"^no such data\.\n  no room\.$")
    with told, completed_on_error(fail):
        raise AgreedError("no such data.")
