"""Numbered cases: a mutation of one file of a dataset, and a reader that meets it."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.mutations.mutation import KINDS, mutated
from tests.mutations.readers import CHANGERS, READERS, Reader, Scene, readers_of
from tests.mutations.sandbox import Outcome, run_cases
from tests.mutations.victim import Victim

READINGS = 3
"""How many readers meet each mutation: case n is reading n % READINGS of mutation n // READINGS."""

_CHANGES_OF_20 = 1
"""Of so many readings by those that change nothing, by one that does: it takes far longer."""


@dataclass(frozen=True)
class Case:
    """One reading of one mutation."""

    file: str
    mutation: str
    reader: str

    def __str__(self) -> str:
        return f"{self.file} {self.mutation} {self.reader}"


class Cases:
    """The cases of a seed."""

    def __init__(
        self,
        victim: Victim,
        *,
        seed: int,
        folder: Path,
        kinds: Sequence[str] = (),
        mutations: Sequence[str] = KINDS,
    ) -> None:
        """Take a dataset.

        Args:
            victim: The dataset.
            seed: Decides all cases.
            folder: An empty folder on the same disk, for copies.
            kinds: Kinds of files that are mutated; none: all.
            mutations: Kinds of mutations.
        """
        self._victim = victim
        self._seed = seed
        self._folder = folder
        self._mutations = mutations
        files = victim.files()
        self._files: Mapping[str, list[str]] = {kind: files[kind] for kind in kinds or files}

    def case(self, number: int) -> Case:
        """Return a case by its number."""
        file, kind, mutation, _ = self._mutation(number)
        return Case(file, mutation, self._reader(number, kind))

    def run(self, number: int) -> int:
        """Run a case and return the exit code of its reader."""
        file, kind, _, content = self._mutation(number)
        name = self._reader(number, kind)
        with self._scene(number, file, content, whole_copy=name in CHANGERS) as scene:
            reader: Reader = {**READERS, **CHANGERS}[name]
            return reader(scene)

    def outcomes(self, numbers: Sequence[int]) -> list[Outcome]:
        """Return what becomes of cases, each of which may end its process."""
        return list(run_cases(numbers, self.run))

    def _mutation(self, number: int) -> tuple[str, str, str, bytes]:
        """Return file, kind of file, kind of mutation and new content."""
        rng = np.random.default_rng([self._seed, number // READINGS])
        kinds = sorted(self._files)
        kind = kinds[rng.integers(len(kinds))]
        files = self._files[kind]
        file = files[rng.integers(len(files))]
        mutation = self._mutations[rng.integers(len(self._mutations))]
        pool = [name for names in self._files.values() for name in names]
        near = [name for name in files if name != file] or pool
        others = [self._content(str(rng.choice(names))) for names in (near, pool)]
        content = mutated(self._content(file), kind=mutation, others=others, rng=rng)
        return file, kind, mutation, content

    def _content(self, name: str) -> bytes:
        return (self._victim.dataset / name).read_bytes()

    def _reader(self, number: int, kind: str) -> str:
        rng = np.random.default_rng([self._seed, number, 1])
        calm, changing = readers_of(kind)
        chosen = changing if changing and rng.integers(20) < _CHANGES_OF_20 else calm
        return chosen[rng.integers(len(chosen))]

    @contextmanager
    def _scene(
        self, number: int, file: str, content: bytes, *, whole_copy: bool
    ) -> Iterator[Scene]:
        """Yield the mutated dataset: a copy of its own, or one that is mended afterwards."""
        place = self._folder / f"{os.getpid()}"
        copy, scratch = place / ("changed" if whole_copy else "read"), place / "scratch"
        if not copy.exists():
            shutil.copytree(self._victim.dataset, copy, copy_function=os.link)
        scratch.mkdir(parents=True, exist_ok=True)
        _put(copy / file, content)
        try:
            yield Scene(
                dataset=copy,
                input=self._victim.input,
                scratch=scratch,
                rng=np.random.default_rng([self._seed, number, 2]),
            )
        finally:
            shutil.rmtree(scratch)
            if whole_copy:
                shutil.rmtree(copy)
            else:
                (copy / file).unlink()
                os.link(self._victim.dataset / file, copy / file)


def _put(path: Path, content: bytes) -> None:
    path.unlink()  # it is a link to the original
    path.write_bytes(content)
