"""A step in Beam's workers: loaded once a process, and by native loops once these pay.

Transforms carry what a step is made of, never the step: models are not pickled.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa

from pipelines import compiled
from pipelines.map.mapper import segment_versions
from pipelines.segments.rows import Verdict
from pipelines.steps.step import Step
from shards.errors import UserError

NATIVE_AFTER = 40 << 20
"""Bytes of batches after which a process goes on with native loops, whose start takes 2.5 s."""

COMPILED_AFTER = 400 << 20
"""The same where no process of the machine has compiled them yet, which takes 20 s and more."""


@dataclass(frozen=True)
class Model:
    """What a step is made of, and what is known of it where the pipeline is made."""

    make: Callable[..., Step]
    """The step's class."""
    arguments: Mapping[str, Any]
    """Its arguments, without `compiled`."""
    identity: str
    """Of this use of it: a process keeps one step for it."""
    parts: Sequence[str] = ()
    """Names of its native loops (compiled.py); none: it has no such."""
    native: bool | None = None
    """Whether to use them; None: once a process has seen enough text."""
    known: Mapping[str, Any] = field(default_factory=dict)
    """Its fingerprints and libraries, as where the pipeline was made."""

    def loaded(self) -> "Loaded":
        """Return the step of this process.

        Raises:
            UserError: It cannot be loaded, or this worker has another model or library.
        """
        with _LOADING:
            loaded = _of(self.identity)
            if loaded.step is None:
                loaded.load(self)
        return loaded


class Loaded:
    """A step of this process; engines may ask for it in several threads, which take turns."""

    def __init__(self) -> None:
        self.step: Step | None = None
        self._model: Model | None = None
        self._lock = threading.Lock()
        self._seen = 0
        self._native = False

    def load(self, model: Model) -> None:
        """Load it."""
        self._native = model.native is True
        self.step, self._model = self._made(model), model

    def __call__(self, batch: pa.RecordBatch) -> Verdict:
        """Return the step's verdict."""
        with self._lock:
            assert self.step is not None
            assert self._model is not None
            self._seen += batch.nbytes
            if not self._native and self._pays(self._model):
                self._native = True
                self.step = self._made(self._model)
            return self.step(batch)

    @property
    def name(self) -> str:
        """The step's."""
        assert self.step is not None
        return self.step.name

    def _pays(self, model: Model) -> bool:
        if model.native is not None or not model.parts or self._seen < NATIVE_AFTER:
            return False
        ready = compiled.available() and compiled.kept(model.parts)
        return ready or (compiled.available() and self._seen >= COMPILED_AFTER)

    def _made(self, model: Model) -> Step:
        """Return the step, which is what the pipeline was made with."""
        if not self._native or not model.parts:
            step = model.make(**model.arguments)
        else:
            with compiled.compiling(model.parts):
                step = model.make(**model.arguments, compiled=True)
        check_known(facts_of(step), model.known)
        return step


def facts_of(step: Step) -> dict[str, Any]:
    """Return what must be the same in all workers: fingerprints of models, versions."""
    versions = {f"{name} library": version for name, version in step.engines.items()}
    return {**step.facts, **segment_versions({}, {}), **versions}


def check_known(here: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Check that a worker has what the pipeline was made with.

    Args:
        here: What it has, by name.
        known: What the pipeline was made with.

    Raises:
        UserError: It has another.
    """
    for name, value in known.items():
        if here.get(name) != value:
            raise UserError(
                f"this worker has {name} {here.get(name)}, the pipeline was made with {value}: the "
                "texts would depend on which worker judged them. Give all machines the same files "
                "and library versions"
            )


_LOADING = threading.Lock()


@lru_cache(maxsize=64)
def _of(identity: str) -> Loaded:
    del identity
    return Loaded()
