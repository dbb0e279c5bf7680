"""The minimum disk space and memory that a run needs."""

import re
from pathlib import Path

import pytest

from shards.errors import UserError
from trainer.capacity import check_disk, check_memory, free_memory


def test_a_disk_without_room(tmp_path: Path) -> None:
    check_disk(tmp_path, 1000)
    with pytest.raises(UserError, match=r"at least 12,000,000\.0 GB there\. Make room"):
        check_disk(tmp_path, 10**15)


@pytest.mark.parametrize(
    ("stage", "wide", "here", "world", "bytes_each"),
    [
        (0, True, 1, 1, 16),  # the bytes of weights, gradients and two moments
        (0, True, 2, 2, 32),
        (0, False, 1, 1, 12),
        (1, True, 2, 2, 20),
        (2, True, 1, 4, 7),
        (3, True, 4, 4, 16),
        (3, False, 1, 4, 3),
    ],
)
def test_memory(stage: int, wide: bool, here: int, world: int, bytes_each: int) -> None:
    needed = 10**9 * bytes_each

    def check(free: int) -> None:
        check_memory(10**9, stage=stage, wide=wide, here=here, world=world, free=free)

    check(0)
    check(needed)
    with pytest.raises(UserError, match=re.escape(f"takes at least {bytes_each}.0 GB of memory")):
        check(needed - 1)


def test_the_least_of_machine_and_groups(tmp_path: Path) -> None:
    groups, proc = tmp_path / "groups", tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (groups / "job/step").mkdir(parents=True)
    assert free_memory(groups, proc) == 0  # the free memory is not known
    (proc / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 800 kB\nHugePages: none\n")
    assert free_memory(groups, proc) == 800 << 10
    (proc / "self/cgroup").write_text("0::/job/step\n")
    (groups / "job/step/memory.max").write_text("max\n")
    assert free_memory(groups, proc) == 800 << 10
    (groups / "job/memory.max").write_text("5000\n")
    (groups / "job/memory.current").write_text("4000\n")
    assert free_memory(groups, proc) == 1000
    (groups / "job/memory.stat").write_text("anon 3000\ninactive_file 600\n")
    assert free_memory(groups, proc) == 1600
    (groups / "job/memory.current").write_text("6000\n")
    assert free_memory(groups, proc) == 0


def test_here() -> None:
    assert free_memory() > 0
