from pathlib import Path

from trainer.checkpoints.writer import free_memory


def test_the_least_of_machine_and_groups(tmp_path: Path) -> None:
    groups, proc = tmp_path / "groups", tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (groups / "job/step").mkdir(parents=True)
    assert free_memory(groups, proc) == 0  # not known
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
