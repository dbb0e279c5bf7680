import threading
from pathlib import Path

import pytest

from shards.errors import UserError
from tests.trainer.alone import ALONE
from tests.trainer.checkpoints.test_checkpoint import put
from trainer.checkpoints import universal
from trainer.checkpoints.checkpoint import Checkpoint, read_checkpoint
from trainer.ranks import AgreedError


def checkpoint_of_two(run: Path) -> Checkpoint:
    here = run / "step-5"
    here.mkdir()
    return Checkpoint(folder=here, step=5, world=2, stage=1, state={}, files={})


@pytest.mark.parametrize(
    ("saved", "now", "expected"),
    [((1, 1), (1, 1), False), ((2, 1), (1, 1), True), ((2, 0), (1, 0), False)],
)
def test_when_to_convert(
    tmp_path: Path, saved: tuple[int, int], now: tuple[int, int], expected: bool
) -> None:
    world, stage = saved
    put(tmp_path, 1, ranks=range(world), world=world, stage=stage)
    checkpoint = read_checkpoint(tmp_path / "step-1", rank=0, world=now[0])
    assert isinstance(checkpoint, Checkpoint)
    assert universal.needs_conversion(checkpoint, world=now[0], stage=now[1]) is expected
    with pytest.raises(UserError, match=r"cannot be read at stage 3.*--init-from"):
        universal.needs_conversion(checkpoint, world=1, stage=3)


def test_a_rank_waits_for_the_file_and_reads_what_it_says(tmp_path: Path) -> None:
    mark, texts = tmp_path / "mark", list[str]()
    waiting = threading.Thread(target=lambda: texts.append(universal._wait_for_text(mark)))
    waiting.start()
    assert not texts
    (tmp_path / "other").write_text("it failed")
    (tmp_path / "other").rename(mark)
    waiting.join(10)
    assert texts == ["it failed"]


def test_a_failed_conversion_is_reported_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(universal, "_run_conversion", lambda *_: "it broke")
    with pytest.raises(
        AgreedError, match=r"step-5 .* could not convert it .*\(it broke\)\. Resume"
    ):
        universal.convert(checkpoint_of_two(tmp_path), ranks=ALONE)
    assert [path.name for path in tmp_path.iterdir()] == ["step-5"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UserError("a.pt was cut short."), r"^a\.pt was cut short\.$"),
        (MemoryError(), r"by 2 ranks, .* \(MemoryError\)\. Resume with 2 ranks"),
        (OSError(12, "Cannot allocate memory"), r"\(\[Errno 12\] Cannot allocate memory\)"),
    ],
    ids=["files", "memory", "no process"],
)
def test_whatever_fails_is_told_to_all_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(universal, "_run_conversion", fail)
    with pytest.raises(AgreedError, match=message):
        universal.convert(checkpoint_of_two(tmp_path), ranks=ALONE)
    assert [path.name for path in tmp_path.iterdir()] == ["step-5"]


def test_ranks_need_not_wait_for_one_that_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(universal, "_run_conversion", stop)
    with pytest.raises(KeyboardInterrupt):
        universal.convert(checkpoint_of_two(tmp_path), ranks=ALONE)
    (mark,) = (tmp_path / "step-5-universal").glob("converted-*")
    assert universal._wait_for_text(mark).endswith("the first rank was stopped.")


def test_leftovers_of_an_earlier_conversion_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "step-5-universal" / "zero").mkdir(parents=True)
    monkeypatch.setattr(universal, "_run_conversion", lambda *_: "")
    checkpoint = checkpoint_of_two(tmp_path)
    assert universal.convert(checkpoint, ranks=ALONE) == "step-5-universal"
    assert not (tmp_path / "step-5-universal" / "zero").exists()
    universal.remove(checkpoint, ranks=ALONE)
    assert not (tmp_path / "step-5-universal").exists()
