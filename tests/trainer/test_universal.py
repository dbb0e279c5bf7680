import threading
from pathlib import Path

import pytest
import torch

from trainer import universal
from trainer.checkpoint import Checkpoint
from trainer.ranks import AgreedError, Ranks

ALONE = Ranks(rank=0, world=1, local_rank=0, device=torch.device("cpu"))


def checkpoint_of_two(run: Path) -> Checkpoint:
    here = run / "step-5"
    here.mkdir()
    return Checkpoint(folder=here, step=5, world=2, stage=1, state={}, files={})


def test_a_rank_waits_for_the_file_and_reads_what_it_says(tmp_path: Path) -> None:
    mark, heard = tmp_path / "mark", list[str]()
    waiting = threading.Thread(target=lambda: heard.append(universal._await(mark)))
    waiting.start()
    assert not heard
    (tmp_path / "other").write_text("it failed")
    (tmp_path / "other").rename(mark)
    waiting.join(10)
    assert heard == ["it failed"]


def test_what_cannot_be_converted_is_told_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(universal, "_convert", lambda *_: "step-5 could not be converted")
    with pytest.raises(AgreedError, match=r"^step-5 could not be converted$"):
        universal.convert(checkpoint_of_two(tmp_path), ranks=ALONE)
    assert [path.name for path in tmp_path.iterdir()] == ["step-5"]


def test_leftovers_of_an_earlier_conversion_are_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "step-5-universal" / "zero").mkdir(parents=True)
    monkeypatch.setattr(universal, "_convert", lambda *_: "")
    checkpoint = checkpoint_of_two(tmp_path)
    assert universal.convert(checkpoint, ranks=ALONE) == "step-5-universal"
    assert not (tmp_path / "step-5-universal" / "zero").exists()
    universal.remove(checkpoint, ranks=ALONE)
    assert not (tmp_path / "step-5-universal").exists()
