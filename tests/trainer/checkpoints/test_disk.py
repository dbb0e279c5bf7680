from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.alone import ALONE
from trainer.distributed import CollectiveError, Ranks
from trainer.saver import run_folder_locked


class ElsewhereRanks(Ranks):
    """The second of two ranks, on a node that sees a different folder than the first rank's."""

    def gather(self, value: Any) -> list[Any]:
        return [None, value]

    def run_on_rank0(self, work: Callable[[], Any]) -> Any:  # noqa: ARG002
        return "process 1 on another host"  # from the lock of rank 0's folder


def test_all_ranks_must_see_one_folder(tmp_path: Path) -> None:
    ranks = ElsewhereRanks(rank=1, world=2, local_rank=0, device=ALONE.device)
    told = r"rank 1: --save .* is not the folder that rank 0 sees: .* on storage that all nodes"
    with (
        pytest.raises(CollectiveError, match=told),
        run_folder_locked(tmp_path, ranks, start=lambda: 5),
    ):
        pass
