"""Runs the trainer in processes forked from one that has already loaded torch."""

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import forks
from tests.ports import free_port
from tests.trainer.corpus import SHAPE, build

Prepare = Callable[[], None]
"""A function that a process calls before it trains; it must belong to a module, so that it can be
sent to the process."""


@dataclass
class Running:
    """The ranks of a run, as processes."""

    processes: list[forks.RunningJob]
    outputs: list[Path]

    def wait(self, seconds: float = 300) -> "Running":
        for process in self.processes:
            assert process.wait(seconds) is not None, f"still running: {self.output()}"
        return self

    def signal(self, number: int, *ranks: int) -> None:
        for rank in ranks or range(len(self.processes)):
            self.processes[rank].signal(number)

    def kill(self) -> None:
        for process in self.processes:
            process.kill()

    def codes(self) -> list[int | None]:
        """Return the exit code of each rank, or None for a rank that is still running."""
        return [process.wait(0) for process in self.processes]

    def output(self) -> str:
        return "".join(path.read_text() for path in self.outputs if path.is_file())


@dataclass(frozen=True)
class Trial:
    """Starts runs whose folders are in one folder."""

    folder: Path
    flags: Sequence[str] = ()
    started: list[Running] = field(default_factory=list)
    command: str = "train"

    @classmethod
    def on_corpus(cls, folder: Path, *flags: object, **shape: object) -> "Trial":
        """Write the small corpus and `model.json` to a folder, and return a trial on these.

        Args:
            folder: The folder; DeepSpeed's `zero0.json` to `zero3.json` are also written to it.
            flags: The flags of every run.
            shape: Settings of the model that differ from `SHAPE`.
        """
        build(folder / "data")
        (folder / "model.json").write_text(json.dumps({**SHAPE, **shape}))
        put_stages(folder)
        given = ("--data", folder / "data", "--model", folder / "model.json", *flags)
        return cls(folder, tuple(map(str, given)))

    def zero(self, stage: int) -> tuple[object, ...]:
        """Return the flags that select a ZeRO stage."""
        return ("--deepspeed", self.folder / f"zero{stage}.json")

    def once(self, *flags: object, world: int = 1, **more: Any) -> Path:
        """Return the folder of an uninterrupted run with these flags, which runs only once."""
        name = "-".join(["whole", str(world), *map(str, flags)]).replace("/", "_")
        if not (self.folder / name).exists():
            self.run(*flags, "--save", self.folder / name, world=world, **more)
        return self.folder / name

    def start(
        self,
        *flags: object,
        world: int = 1,
        nodes: bool = False,
        prepare: Prepare | None = None,
    ) -> Running:
        """Start a run; with `nodes`, each rank is a node with a separate working folder."""
        number = len(self.started)
        port = free_port() if world > 1 else 0
        running = Running([], [])
        for rank in range(world):
            here = self.folder / (f"node-{rank}" if nodes else ".")
            here.mkdir(parents=True, exist_ok=True)
            output = self.folder / f"output-{number}-{rank}.txt"
            arguments = [*self.flags, *map(str, flags)]
            asked = forks.Job(
                words=[f"trainer.{self.command}", *arguments],
                folder=str(here),
                outputs=[str(output)] * 2,
                env=forks.rank_environment(rank, world, port=port, local=0 if nodes else rank),
                pickled=forks.pickled_call(prepare),
            )
            running.processes.append(forks.start("trainer", asked))
            running.outputs.append(output)
        self.started.append(running)
        return running

    def run(self, *flags: object, code: int = 0, **more: Any) -> Running:
        """Run to the end, and check that every rank has this exit code."""
        running = self.start(*flags, **more).wait()
        assert running.codes() == [code] * len(running.processes), running.output()
        return running


def put_stages(folder: Path) -> None:
    """Write DeepSpeed's JSON for each ZeRO stage as zero0.json to zero3.json."""
    for stage in range(4):
        content = {"zero_optimization": {"stage": stage}}
        (folder / f"zero{stage}.json").write_text(json.dumps(content))


def wait_for_step(run: Path, step: int, running: Running) -> None:
    """Wait until a run has logged a step."""
    while not any(event["step"] >= step for event in events(run)):
        assert set(running.codes()) == {None}, running.output()
        time.sleep(0.02)


def events(run: Path, event_name: str | None = None) -> list[dict[str, Any]]:
    """Return the events of a run's log, leaving out timings."""
    path = run / "log.jsonl"
    lines = path.read_text().splitlines() if path.is_file() else []
    parsed = [json.loads(line) for line in lines if line.endswith("}")]
    timed = ("ms_per_step", "tokens_per_second", "samples_per_second", "waiting", "mfu")
    return [
        {name: value for name, value in event.items() if name not in timed}
        for event in parsed
        if event_name in (None, event["event"])
    ]


def losses(run: Path, event_name: str = "train") -> list[float]:
    """Return the losses in a run's log, by step."""
    return [event["loss"] for event in events(run, event_name)]


def kill_minus_nine() -> None:
    """End this process as abruptly as a power cut does."""
    os.kill(os.getpid(), signal.SIGKILL)


def before_a_file_is_whole(act: Callable[[Path], None]) -> None:
    """Make this process call `act` whenever it is about to send a file's bytes to the disk."""
    fsync = os.fsync

    def acting(descriptor: int) -> None:
        act(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    vars(os)["fsync"] = acting
