import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.checkpoints.disk import Disk
from trainer.ranks import AgreedError, Ranks
from trainer.tuning.progress import Best, better, keep

RANKS = Ranks(rank=0, world=1, local_rank=0, device=torch.device("cpu"))
LIST = "whole-00000.json"


def disk_of(folder: Path) -> Disk:
    return Disk(folder=folder, members=(0,), node_local=False)


def best_at(step: int) -> Best:
    return Best(epoch=1, step=step, metrics={"accuracy": 1.0})


def write_checkpoint(folder: Path, step: int) -> Path:
    target = folder / f"step-{step}"
    (target / "deep").mkdir(parents=True)
    (target / "weights.pt").write_text(f"weights {step}")
    (target / "deep" / "more.pt").write_text("more")
    return target


def test_a_checkpoint_is_kept_once_it_is_whole(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path, 3)
    assert not keep(disk_of(tmp_path), best_at(3), RANKS)
    assert not (tmp_path / "best").exists()
    (source / LIST).write_text("{}")
    assert keep(disk_of(tmp_path), best_at(3), RANKS)
    kept = tmp_path / "best" / "step-3"
    assert (kept / "weights.pt").samefile(source / "weights.pt")
    assert (kept / "deep" / "more.pt").read_text() == "more"
    assert (kept / LIST).is_file()


def test_the_former_best_goes_last(tmp_path: Path) -> None:
    for step in (3, 6):
        (write_checkpoint(tmp_path, step) / LIST).write_text("{}")
        keep(disk_of(tmp_path), best_at(step), RANKS)
        # What has gone from the run's own folder stays.
        keep(disk_of(tmp_path), best_at(9), RANKS)
    assert [path.name for path in (tmp_path / "best").iterdir()] == ["step-6"]


def test_an_interrupted_one_is_made_again(tmp_path: Path) -> None:
    (write_checkpoint(tmp_path, 3) / LIST).write_text("{}")
    (tmp_path / "best" / "step-3").mkdir(parents=True)
    (tmp_path / "best" / "step-3" / "weights.pt").write_text("cut")
    keep(disk_of(tmp_path), best_at(3), RANKS)
    assert (tmp_path / "best" / "step-3" / "weights.pt").read_text() == "weights 3"
    assert (tmp_path / "best" / "step-3" / LIST).is_file()


def test_where_files_have_one_name_only_they_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", refuse)
    source = write_checkpoint(tmp_path, 3)
    (source / LIST).write_text("{}")
    keep(disk_of(tmp_path), best_at(3), RANKS)
    copied = tmp_path / "best" / "step-3" / "weights.pt"
    assert copied.read_text() == "weights 3"
    assert not copied.samefile(source / "weights.pt")


def test_a_disk_that_does_not_take_it(tmp_path: Path) -> None:
    (write_checkpoint(tmp_path, 3) / LIST).write_text("{}")
    (tmp_path / "best").write_text("a file")
    with pytest.raises(AgreedError, match=r"best/step-3: .* is a file where a folder is needed"):
        keep(disk_of(tmp_path), best_at(3), RANKS)


def test_the_first_of_equals_is_the_best() -> None:
    first, second, third = (
        Best(epoch=epoch, step=10 * epoch, metrics={"accuracy": accuracy, "f1": -epoch})
        for epoch, accuracy in ((1, 50.0), (2, 50.0), (3, 51.0))
    )
    assert better(None, first) is first
    assert better(first, second) is first
    assert better(first, third) is third


def test_what_is_no_number_is_never_the_best() -> None:
    broken, fair = (
        Best(epoch=epoch, step=epoch, metrics={"log_probability": figure})
        for epoch, figure in ((1, math.nan), (2, -7.0))
    )
    assert better(None, broken) is None
    assert better(fair, broken) is fair
    assert better(None, fair) is fair
