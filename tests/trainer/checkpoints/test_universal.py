from pathlib import Path

import pytest
from deepspeed.checkpoint import ds_to_universal

from tests.trainer.alone import ALONE
from trainer import universal
from trainer.checkpoint import Checkpoint
from trainer.distributed import CollectiveError


def checkpoint_of_two(run: Path) -> Checkpoint:
    here = run / "step-5"
    here.mkdir()
    return Checkpoint(folder=here, version=2, step=5, world=2, stage=1, state={}, files={})


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
    with pytest.raises(CollectiveError, match=message):
        universal.convert(checkpoint_of_two(tmp_path), ranks=ALONE)
    assert [path.name for path in tmp_path.iterdir()] == ["step-5"]
