"""A case of the soak: its folder, its commands, and the checks after every command."""

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
from tests.soak.commands import Result, RunningCommand, Trap, kill_group, start
from tests.soak.scenario import Scenario, make_scenario

LEVELS: tuple[Mapping[str, int], ...] = (
    {},
    {},
    {"ROWS_PER_RANGE": 40, "MAX_SHARD_SLICES": 0},
    {"ROWS_PER_RANGE": 40, "MAX_SHARD_SLICES": 0, "PASS_WEIGHT": 0},
)
"""Values of constants that make shards read whole segments or ranges of segments."""

MODULES_WITH_SIZES = (
    *("shards.storage.sparse", "shards.tables", "pipelines.segments.bins"),
    *("pipelines.segments.matches", "pipelines.segments.segment", "pipelines.merge.plan"),
    "pipelines.merge.ranges",
)
"""The modules that may define the constants in LEVELS."""


class NoDocuments(Exception):
    """The run was refused because it kept no document of the inputs."""


@dataclass
class Case:
    """One case of the soak."""

    rng: random.Random
    folder: Path
    engine: tuple[str, ...] = ()
    """The flags that select the engine."""
    forked: bool = True
    constants: dict[str, dict[str, int]] = field(default_factory=dict)
    """Constants, by module, that make a run treat small corpora like large ones; only if it has no
    workers."""
    commands: int = 0
    notes: list[str] = field(default_factory=list)
    """A log of the case's steps, for debugging a failure."""

    def scenario(self, *, small: bool = False) -> Scenario:
        """Return random inputs."""
        scenario = make_scenario(self.rng, self.folder, small=small)
        self.note("flags", " ".join(scenario.command()))
        return scenario

    def note(self, what: str, last_line: object) -> None:
        self.notes.append(f"{what}: {last_line}")

    def choose_sizes(self) -> None:
        """Choose random sizes of segments, batches and ranges."""
        if self.engine or not self.forked:
            return
        level = self.rng.choice(LEVELS)
        sizes: dict[str, dict[str, int]] = {}
        if level:
            for module in MODULES_WITH_SIZES:
                owner = importlib.import_module(module)
                sizes[module] = {name: level[name] for name in level if hasattr(owner, name)}
        if self.rng.random() < 0.4:
            rows = self.rng.choice((1, 7, 40))
            sizes["pipelines.corpus.batcher"] = {"BATCH_RECORDS": rows}
            sizes["pipelines.process.builder"] = {"MAX_RECORDS": rows * self.rng.choice((1, 2, 5))}
        self.constants = sizes
        self.note("sizes", sizes)

    def start(self, words: Sequence[object], *, trap: Trap | None = None) -> RunningCommand:
        """Start a command of the product; the first word is the module."""
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

    def run(self, *words: object, trap: Trap | None = None) -> Result:
        """Run a command to its end, and check how it ended."""
        done = self.start(words, trap=trap).wait()
        self.check_ended(done)
        return done

    def run_killed(self, *words: object, first: int = 1, last: int = 256) -> Result:
        """Run a command, and kill it at a random change of the disk, most often an early one."""
        nth = int(first * (last / first) ** self.rng.random())
        return self.expect_code(self.run(*words, trap=Trap(nth, kill_group)), 0, -9)

    def check_ended(self, done: Result) -> None:
        """Check the rules for every command: a known exit code, no traceback, printable output."""
        self.note("ended", f"{done.code} after {done.seconds:.1f} s: {done.last_line[:300]}")
        if "Traceback (most recent call last)" in done.output:
            raise Failure(f"a traceback: {' '.join(done.words)[:200]}: {done.output[-1500:]}")
        if not printable(done.output):
            raise Failure(f"control characters reach the terminal: {done.output[-600:]!r}")
        if done.code not in (0, 1, 2, -9):
            raise Failure(f"exit code {done.code}: {done.output[-600:]}")
        if done.code == 2 and "no document of this input is left" in done.last_line:
            raise NoDocuments
        module = done.words[0]
        if done.code == 2 and f"\n{module}: " not in f"\n{done.output}":
            raise Failure(f"{module} refused without a paragraph at its end: {done.output[-600:]}")

    def succeed(self, *words: object) -> Result:
        """Run a command that must succeed."""
        return self.expect_code(self.run(*words), 0)

    @staticmethod
    def expect_code(done: Result, *codes: int) -> Result:
        """Return the result of a command after checking that its exit code is one of `codes`."""
        if done.code not in codes:
            raise Failure(f"exit code {done.code}, not {codes}: {done.output[-1500:]}")
        return done

    def undisturbed(self, words: Sequence[object]) -> dict[str, str]:
        """Return `hashes_and_figures` of the dataset that an uninterrupted run builds.

        The run uses the product's own sizes, which change no byte, except for the sizes of
        segments. Those decide the number of shards, unless --shards is given, and with MinHash they
        decide the report's figures, because each segment first drops its own duplicates.
        """
        output, sizes = self.folder / "undisturbed", self.constants
        same = "--shards" in words and "minhash" not in words
        decide = () if same else ("pipelines.corpus.batcher", "pipelines.process.builder")
        self.constants = {module: sizes[module] for module in decide if module in sizes}
        self.succeed(*words, "--output", output)
        self.constants = sizes
        found = hashes_and_figures(output)
        shutil.rmtree(output)
        return found


def file_hashes(output: Path) -> dict[str, str]:
    """Return the hashes of a dataset's files, leaving out the remains of killed commands."""
    return {
        name: value
        for name, value in content(output).items()
        if not name.startswith(".work") and not PurePath(name).name.startswith(".tmp-")
    }


def hashes_and_figures(output: Path) -> dict[str, str]:
    """Return the hashes of a dataset's files, and the report's figures about documents."""
    report = json.loads((output / "report.json").read_bytes())
    figures = {name: report[name] for name in ("dedup", "examples", "funnel", "histograms")}
    return {**file_hashes(output), "report.json": json.dumps(figures)}


def flags_of(scenario: Scenario, **changes: Any) -> list[str]:
    """Return the command of a scenario, module first, with `changes` to its flags."""
    words = [scenario.module, *scenario.command()]
    for name, value in changes.items():
        flag = "--" + name.replace("_", "-")
        words += [flag] if value is True else [flag, str(value)]
    return words
