from pathlib import Path

import pytest

from tests.trainer.alone import ALONE
from trainer.checkpoints.disk import find_disk
from trainer.ranks import AgreedError, Ranks


def test_a_folder_is_made_and_the_marks_are_removed(tmp_path: Path) -> None:
    disk = find_disk(tmp_path / "new", ALONE)
    assert (disk.members, disk.node_local, disk.leader) == ((0,), False, 0)
    assert not list((tmp_path / "new").iterdir())


class Node(Ranks):
    """The first of two ranks, which answers for the other as well."""

    def gather(self, value: object) -> list[object]:  # type: ignore[override]  # of one type here
        """The other rank has its own disk, and so sees its own mark alone."""
        other = {(0,): (1,), 0: 0}
        return [value, other.get(value, value)]  # type: ignore[call-overload]


def test_each_node_has_its_own_disk(tmp_path: Path) -> None:
    disk = find_disk(tmp_path, Node(rank=0, world=2, local_rank=0, device=ALONE.device))
    assert (disk.members, disk.node_local, disk.leader) == ((0,), True, 0)


class SameNode(Node):
    """Both ranks are on one node, and yet see different folders."""

    def gather(self, value: object) -> list[object]:
        return [0, 1] if value == 0 else super().gather(value)


def test_ranks_of_one_node_must_see_one_folder(tmp_path: Path) -> None:
    ranks = SameNode(rank=0, world=2, local_rank=0, device=ALONE.device)
    with pytest.raises(AgreedError, match=r"is shared by ranks 0 and ranks 1: that is neither one"):
        find_disk(tmp_path, ranks)
