from pathlib import Path

import pytest

from tests.trainer.alone import ALONE
from trainer.checkpoints.disk import run_folder_locked
from trainer.distributed import CollectiveError, Ranks


class ElsewhereRanks(Ranks):
    """The second of two ranks, whose node sees another folder than the first."""

    def gather(self, value: object) -> list[object]:  # type: ignore[override]  # of one type here
        return [
            None if value is None or (isinstance(value, str) and " " in value) else value,
            value,
        ]


def test_a_folder_is_made_and_the_mark_is_removed(tmp_path: Path) -> None:
    with run_folder_locked(tmp_path / "new", ALONE, start=lambda: 5) as started:
        assert started == 5
        assert not list((tmp_path / "new").glob(".seen-*"))


def test_all_ranks_must_see_one_folder(tmp_path: Path) -> None:
    ranks = ElsewhereRanks(rank=1, world=2, local_rank=0, device=ALONE.device)
    told = r"rank 1: --save .* is not the folder that rank 0 sees: .* on storage that all nodes"
    with (
        pytest.raises(CollectiveError, match=told),
        run_folder_locked(tmp_path, ranks, start=lambda: 5),
    ):
        pass
