from pathlib import Path

import pytest

from tests.trainer.alone import ALONE
from trainer.checkpoints.disk import find_disk
from trainer.ranks import AgreedError, Ranks


def test_a_folder_is_made_and_the_marks_are_removed(tmp_path: Path) -> None:
    disk = find_disk(tmp_path / "new", ALONE)
    assert (disk.members, disk.node_local, disk.leader) == ((0,), False, 0)
    assert not list((tmp_path / "new").iterdir())


class SameNode(Ranks):
    """The first of two ranks on one node, which answers for the other: that sees another folder."""

    def gather(self, value: object) -> list[object]:  # type: ignore[override]  # of one type here
        """Each sees its own mark alone."""
        return [value, {(0,): (1,), 0: 1}.get(value, value)]  # type: ignore[call-overload]


def test_ranks_of_one_node_must_see_one_folder(tmp_path: Path) -> None:
    ranks = SameNode(rank=0, world=2, local_rank=0, device=ALONE.device)
    with pytest.raises(AgreedError, match=r"is shared by ranks 0 and ranks 1: that is neither one"):
        find_disk(tmp_path, ranks)
