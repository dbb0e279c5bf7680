import math
import os
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.alone import ALONE
from tests.trainer.checkpoints.test_checkpoint import put
from trainer.finetune.progress import BestEpoch, better_epoch, keep_best


def test_where_files_have_one_name_only_they_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", refuse)
    source = put(tmp_path, 3)
    keep_best(tmp_path, BestEpoch(epoch=1, step=3, metrics={}), ALONE)
    copied = tmp_path / "best" / "step-3" / "optim-0.pt"
    assert copied.read_bytes() == (source / "optim-0.pt").read_bytes()
    assert not copied.samefile(source / "optim-0.pt")


def test_what_is_no_number_is_never_the_best() -> None:
    broken, fair = (
        BestEpoch(epoch=epoch, step=epoch, metrics={"log_probability": figure})
        for epoch, figure in ((1, math.nan), (2, -7.0))
    )
    assert better_epoch(None, broken) is None
    assert better_epoch(fair, broken) is fair
    assert better_epoch(None, fair) is fair
