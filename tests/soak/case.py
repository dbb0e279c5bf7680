"""A case: its folder, its commands, and what every command must keep to."""

import importlib
import json
import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from tests.pipelines.runs import content
from tests.soak.check import Failure, printable
from tests.soak.commands import Done, Started, Trap, kill_group, start
from tests.soak.world import World, make_world

LEVELS: tuple[Mapping[str, int], ...] = (
    {},
    {},
    {"ROWS_PER_RANGE": 40, "MAX_SHARD_SLICES": 0},
    {"ROWS_PER_RANGE": 40, "MAX_SHARD_SLICES": 0, "PASS_WEIGHT": 0},
)
"""Constants that make shards read segments, or ranges of them, few and many."""

READERS = (
    *("shards.storage.sparse", "shards.tables", "pipelines.segments.bins"),
    *("pipelines.segments.matches", "pipelines.segments.segment", "pipelines.merge.holdout"),
    "pipelines.merge.ranges",
)
"""The modules that have these constants."""


class Nothing(Exception):
    """No document is left of the inputs, which a run refuses."""


@dataclass
class Case:
    """One case of the soak."""

    rng: random.Random
    folder: Path
    engine: tuple[str, ...] = ()
    """The flags that say where tasks run."""
    forked: bool = True
    constants: dict[str, dict[str, int]] = field(default_factory=dict)
    """Sizes that make small corpora go the way of large ones; without workers only."""
    commands: int = 0
    notes: list[str] = field(default_factory=list)
    """The steps so far, for who looks at a failure."""

    def world(self, *, small: bool = False) -> World:
        """Return random inputs."""
        world = make_world(self.rng, self.folder, small=small)
        self.note("flags", " ".join(world.command()))
        return world

    def note(self, what: str, said: object) -> None:
        self.notes.append(f"{what}: {said}")

    def choose_sizes(self) -> None:
        """Choose sizes of segments, groups and ranges at random."""
        if self.engine or not self.forked:
            return
        level = self.rng.choice(LEVELS)
        sizes: dict[str, dict[str, int]] = {}
        if level:
            for module in READERS:
                owner = importlib.import_module(module)
                sizes[module] = {name: level[name] for name in level if hasattr(owner, name)}
        if self.rng.random() < 0.4:
            rows = self.rng.choice((1, 7, 40))
            sizes["pipelines.corpus.batcher"] = {"BATCH_RECORDS": rows}
            sizes["pipelines.process.builder"] = {"MAX_RECORDS": rows * self.rng.choice((1, 2, 5))}
        self.constants = sizes
        self.note("sizes", sizes)

    def start(self, words: Sequence[object], *, trap: Trap | None = None) -> Started:
        """Start a command of the product."""
        self.commands += 1
        module, *flags = map(str, words)
        if module != "shards":
            flags += self.engine
        log = self.folder / f"command-{self.commands:02}.log"
        self.note(f"command {self.commands}", " ".join([module, *flags]))
        return start(
            [module, *flags],
            log=log,
            trap=trap if self.forked else None,
            constants=self.constants,
            forked=self.forked,
        )

    def run(self, *words: object, trap: Trap | None = None) -> Done:
        """Run a command to its end; it may not end in a traceback or unprintable text."""
        done = self.start(words, trap=trap).wait()
        self.look_at(done)
        return done

    def killed(self, *words: object, first: int = 1, last: int = 256) -> Done:
        """Run a command that is killed at a change of the disk, more often an early one."""
        nth = int(first * (last / first) ** self.rng.random())
        return self.run(*words, trap=Trap(nth, kill_group))

    def look_at(self, done: Done) -> None:
        """Check what every command keeps to, however it ends."""
        self.note("ended", f"{done.code} after {done.seconds:.1f} s: {done.said[:300]}")
        if "Traceback (most recent call last)" in done.output:
            raise Failure(f"a traceback: {' '.join(done.words)[:200]}: {done.output[-1500:]}")
        if not printable(done.output):
            raise Failure(f"control characters reach the terminal: {done.output[-600:]!r}")
        if done.code not in (0, 1, 2, -9):
            raise Failure(f"exit code {done.code}: {done.output[-600:]}")
        if done.code == 2 and "no document is left of this input" in done.said:
            raise Nothing
        module = done.words[0]
        if done.code == 2 and f"\n{module}: " not in f"\n{done.output}":
            raise Failure(f"{module} refused without a paragraph at its end: {done.output[-600:]}")

    def succeed(self, *words: object) -> Done:
        """Run a command that must succeed."""
        done = self.run(*words)
        if done.code:
            raise Failure(f"exit code {done.code}, 0 expected: {done.output[-1500:]}")
        return done

    def calm(self, words: Sequence[object], name: str = "calm") -> dict[str, str]:
        """Return `reported` of the dataset that an undisturbed run of a command makes.

        It has the sizes of the product, which change no byte. Those of segments are an exception:
        where no number of shards is given, it follows from the tokens that segments contain, and
        the report counts the documents that MinHash compares, after each segment has dropped
        its own duplicates. The folder is deleted.
        """
        output, sizes = self.folder / name, self.constants
        same = "--shards" in words and "minhash" not in words
        decide = () if same else ("pipelines.corpus.batcher", "pipelines.process.builder")
        self.constants = {module: sizes[module] for module in decide if module in sizes}
        self.succeed(*words, "--output", output)
        self.constants = sizes
        found = reported(output)
        shutil.rmtree(output)
        return found


def shipped(output: Path) -> dict[str, str]:
    """Return the hash of every file of a dataset, without what a kill leaves to prune."""
    return {
        name: value
        for name, value in content(output).items()
        if not name.startswith(".work") and not PurePath(name).name.startswith(".tmp-")
    }


def reported(output: Path) -> dict[str, str]:
    """Return the hashes of the files of a dataset, and the figures of documents in its report."""
    report = json.loads((output / "report.json").read_bytes())
    figures = {name: report[name] for name in ("dedup", "examples", "funnel", "histograms")}
    return {**shipped(output), "report.json": json.dumps(figures)}


def flags_of(world: World, **changes: Any) -> list[str]:
    """Return the command of a world, module first, with further flags."""
    words = [world.module, *world.command()]
    for name, value in changes.items():
        flag = "--" + name.replace("_", "-")
        words += [flag] if value is True else [flag, str(value)]
    return words
