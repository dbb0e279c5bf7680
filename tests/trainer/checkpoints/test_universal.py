from pathlib import Path

import pytest
from deepspeed.checkpoint import ds_to_universal

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


ENDS: dict[str, tuple[Exception, str]] = {
    "it failed": (ValueError("it broke"), r"could not convert it .* \(it broke\)\. Resume"),
    "memory": (MemoryError(), r"by 2 ranks, .* \(MemoryError\)\. Resume with 2 ranks"),
}


@pytest.mark.parametrize(("end", "message"), ENDS.values(), ids=ENDS)
def test_a_failed_conversion_is_told_to_all_ranks_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Exception, message: str
) -> None:
    def convert(_: object) -> None:
        raise end

    monkeypatch.setattr(ds_to_universal, "main", convert)
    with pytest.raises(AgreedError, match=message):
        universal.convert(checkpoint_of_two(tmp_path), ranks=ALONE)
    assert [path.name for path in tmp_path.iterdir()] == ["step-5"]


def test_ranks_need_not_wait_for_one_that_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ds_to_universal, "main", stop)
    with pytest.raises(KeyboardInterrupt):
        universal.convert(checkpoint_of_two(tmp_path), ranks=ALONE)
    (mark,) = (tmp_path / "step-5-universal").glob("converted-*")
    assert mark.read_text().endswith("the first rank was stopped.")
