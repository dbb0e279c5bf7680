from pathlib import Path
from typing import Any

import pytest

from shards.errors import UserError
from tests.trainer.alone import ALONE
from tests.trainer.checkpoints.test_checkpoint import put
from trainer.checkpoints.disk import Disk
from trainer.tuning import start as module
from trainer.tuning.settings import parse


class CheckedError(UserError):
    """Ends a start where files have been checked."""


@pytest.mark.parametrize("is_own", [True, False])
def test_ranks_share_the_reading_of_their_own_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_own: bool
) -> None:
    seen: list[Disk | None] = []

    def check(_: object, *, disk: Disk | None, **__: Any) -> None:
        seen.append(disk)
        raise CheckedError("enough")

    monkeypatch.setattr(module, "check_files", check)
    put(tmp_path / "run", 3)
    save = tmp_path / ("run" if is_own else "other")
    flags = ("--task", "copa", "--data", "items", "--init-from", "model", "--save", str(save))
    config = parse([*flags, "--resume", str(tmp_path / "run")], world=1)
    with pytest.raises(CheckedError):
        module.start(config, ALONE)
    # Another folder may be on the disk of one node only, whatever --save is.
    assert [disk is not None for disk in seen] == [is_own]
