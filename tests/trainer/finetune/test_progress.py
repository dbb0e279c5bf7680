import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.checkpoints.disk import Disk
from trainer.finetune.progress import Best, better, keep
from trainer.ranks import Ranks

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


def test_what_is_no_number_is_never_the_best() -> None:
    broken, fair = (
        Best(epoch=epoch, step=epoch, metrics={"log_probability": figure})
        for epoch, figure in ((1, math.nan), (2, -7.0))
    )
    assert better(None, broken) is None
    assert better(fair, broken) is fair
    assert better(None, fair) is fair
