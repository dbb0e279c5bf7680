import errno
import json
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from shards.errors import UserError
from shards.storage.disk import explain
from shards.storage.files import Handle, crc32c
from tests.trainer.alone import ALONE
from tests.trainer.checkpoints.test_checkpoint import put
from trainer.checkpoints import writer
from trainer.checkpoints.checkpoint import BAD_STREAK, find_common_checkpoint, read_list
from trainer.checkpoints.disk import find_disk
from trainer.checkpoints.saver import Saver
from trainer.ranks import AgreedError
from trainer.run import Running

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


def steps(folder: Path) -> list[int]:
    return sorted(int(path.name[5:]) for path in folder.glob("step-*"))


class Gate:
    """Makes the files of checkpoints wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._write, self.open, self.error = writer._write, threading.Event(), 0
        monkeypatch.setattr(writer, "_write", self)

    def __call__(self, state: Any, path: Path) -> Any:
        assert self.open.wait(60)
        if self.error:
            raise OSError(self.error, "by the test")
        return self._write(state, path)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def test_training_goes_on_while_a_checkpoint_is_written(tmp_path: Path, gate: Gate) -> None:
    engine, saving = saver(tmp_path)
    saving.save(step=3, state=GOOD)
    engine.weights += 1  # a step, of which the checkpoint must know nothing
    saving.advance(bad_streak=0)
    folder = tmp_path / "step-3"
    assert not list(folder.glob("whole-*"))
    gate.open.set()
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


def test_a_checkpoint_is_completed_between_steps(tmp_path: Path) -> None:
    _, saving = saver(tmp_path)
    saving.save(step=3, state=GOOD)
    while not list(tmp_path.glob("step-3/whole-*")):
        saving.advance(bad_streak=0)


def test_a_run_that_fails_between_steps_completes_its_checkpoint(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, saving = saver(tmp_path)
    training: Any = Running.__new__(Running)
    training._saver, training._bad_streak = saving, 0
    training._work = SimpleNamespace(saved=lambda: None)

    def fail() -> int:
        saving.save(step=3, state=GOOD)
        gate.open.set()
        raise AgreedError("no such data.")

    monkeypatch.setattr(training, "_take_steps", fail)
    with pytest.raises(AgreedError, match=r"^no such data\.$"):
        training.run()
    assert list(tmp_path.glob("step-3/whole-*"))
    gate.open.clear()
    gate.error = errno.ENOSPC
    shutil.rmtree(tmp_path / "step-3")
    with pytest.raises(
        AgreedError, match=r"^no such data\.\n  .*step-3 was not saved: no space.*begins anew"
    ):
        training.run()


def test_without_memory_training_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, saving = saver(tmp_path)
    engine.save_checkpoint(str(tmp_path), "other", client_state={"step": 3})
    saving._writer.entries()
    monkeypatch.setattr(writer, "free_memory", lambda: 1000)
    saving.save(step=3, state=GOOD)
    assert list(tmp_path.glob("step-3/whole-*"))
    # Copied or not, it is the same file.
    assert crc32c(tmp_path / "step-3/model.pt") == crc32c(tmp_path / "other/model.pt")


ERRORS = {
    errno.ENOSPC: r"no space left on the disk that holds .*: make room and run the same command",
    errno.EDQUOT: r"no space left on the disk that holds .*: make room and run the same command",
    errno.EIO: r"Input/output error: check the disk and run the same command again",
}


@pytest.mark.parametrize(("number", "message"), ERRORS.items())
@pytest.mark.parametrize("in_background", [True, False])
def test_a_disk_that_does_not_take_it(
    tmp_path: Path,
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    message: str,
    in_background: bool,
) -> None:
    put(tmp_path, 1)
    _, saving = saver(tmp_path)
    gate.error = number
    if not in_background:
        monkeypatch.setattr(writer, "free_memory", lambda: 0)
        gate.open.set()

    def run() -> None:
        saving.save(step=2, state=GOOD)
        gate.open.set()
        saving.finish(bad_streak=0)

    with pytest.raises(
        UserError, match=rf"step-2 was not saved: .*{message}.* resumes from"
    ) as told:
        run()
    assert ("room" in str(told.value)) is (number != errno.EIO)
    checkpoint = find_common_checkpoint(tmp_path, ranks=ALONE, disk=None)
    assert checkpoint is not None
    assert checkpoint.step == 1


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

    def run() -> None:
        saving.save(step=2, state=GOOD)
        saving.finish(bad_streak=0)

    with pytest.raises(UserError, match=r"step-2 was not saved: no space left on the disk"):
        run()
    assert not list(tmp_path.glob("step-2/*.pt"))


@pytest.mark.parametrize("removing", ["bad ones", "old ones"])
def test_all_ranks_hear_of_what_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removing: str
) -> None:
    _, saving = saver(tmp_path, keep=1)
    put(tmp_path, 1, streak=int(removing == "bad ones"))
    unlink = Path.unlink

    def refuse(path: Path, **more: Any) -> None:
        if path.parent.name == "step-1":
            raise OSError(errno.EACCES, "by the test")
        unlink(path, **more)

    def run() -> None:
        saving.save(step=2, state=GOOD)
        saving.finish(bad_streak=0)

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(AgreedError, match=r"step-1: Permission denied: you lack permission here"):
        run()
    assert list(tmp_path.glob("step-2/whole-*"))


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
    saving.save(step=20, state=GOOD)
    saving.finish(bad_streak=0)
    assert steps(tmp_path) == expected
    checkpoint = find_common_checkpoint(tmp_path, ranks=ALONE, disk=None)
    assert checkpoint is not None
    assert checkpoint.step == 20


def test_bad_losses_push_nothing_out(tmp_path: Path) -> None:
    _, saving = saver(tmp_path, keep=2)
    for step in (1, 2, 3):
        saving.save(step=step, state=GOOD)
    for streak in (1, 2, 3, 4):
        saving.save(step=3 + streak, state={BAD_STREAK: streak})
    saving.finish(bad_streak=4)
    # Nobody knows whether the weights of step 3 are any good.
    assert steps(tmp_path) == [1, 2, 3, 7]
    saving.update_state(3, {BAD_STREAK: 4})
    assert json.loads((tmp_path / "step-3/whole-00000.json").read_text())["state"] == {
        BAD_STREAK: 4
    }
    checkpoint = find_common_checkpoint(tmp_path, ranks=ALONE, disk=None)
    assert checkpoint is not None
    assert checkpoint.step == 2
    # The run goes on from there, and reaches the step at which it had diverged.
    for step in (3, 4):
        saving.save(step=step, state=GOOD)
    saving.advance(bad_streak=1)
    saving.finish(bad_streak=1)
    assert steps(tmp_path) == [2, 3, 4, 7]
    saving.advance(bad_streak=0)
    assert steps(tmp_path) == [3, 4, 7]


def test_a_state_is_updated_beside_its_files(tmp_path: Path) -> None:
    _, saving = saver(tmp_path)
    saving.save(step=3, state={**GOOD, "evaluated": 0, "other": "stays"})
    saving.finish(bad_streak=0)
    before = read_list(tmp_path / "step-3/whole-00000.json")
    saving.update_state(3, {"evaluated": 1})
    saving.update_state(4, {"evaluated": 1})  # which was not saved
    after = read_list(tmp_path / "step-3/whole-00000.json")
    assert after.state == {**GOOD, "evaluated": 1, "other": "stays"}
    assert after.files == before.files
    assert steps(tmp_path) == [3]
