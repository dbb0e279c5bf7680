"""Custom profiles and word splitters: loaded, checked, and guarded where they are called."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import is_

import numpy as np

from pipelines.corpus.failure import reraise_user_code_errors
from pipelines.corpus.user_code import load_user_code, module_of
from pipelines.quality.batch import Column, MeasuredText, TextBatch
from pipelines.quality.profile import Bounds, Measure, Profile
from pipelines.quality.words import DATATROVE, SPACES
from shards.errors import UserError

PROFILE, SPLITTER = "quality profile", "word splitter"

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_METRIC = re.compile(r"[a-z][a-z0-9_]*")
_SHOWN = 40


def load_profile(spec: str, *, taken: Collection[str]) -> Profile:
    """Return the profile of MODULE:NAME.

    Args:
        spec: As given.
        taken: The names of other profiles.

    Raises:
        UserError: There is none, or it is no proper profile.
    """
    profile = load_user_code(spec, what=PROFILE)
    if not isinstance(profile, Profile):
        raise UserError(
            f'the {PROFILE} "{spec}" is a {type(profile).__name__}, not a Profile of '
            "pipelines.quality"
        )
    for problem in _problems(profile, taken):
        raise UserError(f'the {PROFILE} "{spec}": {problem}')
    assert profile.measure is not None  # see _problems
    guarded = _OneByOne(spec, profile.measure, len(profile.metrics))
    return replace(profile, module=module_of(spec), measure_batch=guarded)


def _problems(profile: Profile, taken: Collection[str]) -> Iterator[str]:
    for name in (profile.family, profile.variant or "a"):
        if not _NAME.fullmatch(name):
            yield f"{name!r} is not a name: write small letters and digits, joined by -"
    for name in {profile.name, profile.short} & {*taken}:
        yield f"a profile of this package is called {name!r}: choose another family or variant"
    if profile.measure is None:
        yield "it has no function `measure`"
    yield from _odd_metrics(profile)
    if profile.words not in ("", SPACES, DATATROVE):
        yield f"words is {profile.words!r}, not one of '', {SPACES!r}, {DATATROVE!r}"
    if len(profile.defaults) < len(profile.thresholds):
        yield "two of its thresholds have the same name"
    yield from _odd_rules(profile)


def _odd_metrics(profile: Profile) -> Iterator[str]:
    if not profile.metrics or len({*profile.metrics}) < len(profile.metrics):
        yield f"its metrics are none, or one is named twice: {profile.metrics}"
    for metric in profile.metrics:
        if not _METRIC.fullmatch(metric):
            yield f"{metric!r} is not a name of a metric: write small letters, digits and _"


def _odd_rules(profile: Profile) -> Iterator[str]:
    for threshold in profile.thresholds:
        if not threshold.rule:
            continue
        known = threshold.name.startswith(("min_", "max_")) and threshold.metric in profile.metrics
        if not known:
            ways = " or ".join(f"min_{metric}, max_{metric}" for metric in profile.metrics)
            yield f"its threshold {threshold.name!r} is not called {ways}"
        if not _NAME.fullmatch(threshold.rule):
            yield (
                f"the rule {threshold.rule!r} is not a name: small letters and digits, joined by -"
            )


@dataclass(frozen=True, slots=True)
class _OneByOne:
    """Measures batches by a function of one text, with errors that say which profile and where."""

    spec: str
    measure: Measure
    num_metrics: int

    def __call__(self, batch: TextBatch, bounds: Bounds) -> tuple[TextBatch, Sequence[Column]]:
        """Return the texts that the function passes on, and the metrics of all.

        Raises:
            UserError: It fails, or returns something else.
        """
        texts = [MeasuredText(batch, at) for at in range(len(batch.strings))]
        measured = [self._measured(text, bounds) for text in texts]
        figures = np.array([figures for _, figures in measured], np.float64)
        passed_on = [text.text for text, _ in measured]
        same = all(map(is_, passed_on, batch.strings))
        columns = list(figures.reshape(len(texts), self.num_metrics).T)
        return (batch if same else batch.replaced(passed_on)), columns

    def _measured(
        self, text: MeasuredText, bounds: Bounds
    ) -> tuple[MeasuredText, tuple[float, ...]]:
        doing = f"its measure() {_failed_on(text.text)}"
        with reraise_user_code_errors(self.spec, doing=doing, what=PROFILE):
            passed_on, metrics = self.measure(text, bounds)
            figures = tuple(map(float, metrics))
            if not isinstance(passed_on, MeasuredText) or len(figures) != self.num_metrics:
                raise TypeError(
                    f"it returns a {type(passed_on).__name__} and {len(figures)} metrics, not a "
                    f"MeasuredText and {self.num_metrics}"
                )
            return passed_on, figures


@dataclass(frozen=True, slots=True)
class _Split:
    """A splitter, with errors that say which one and where."""

    spec: str
    split: Callable[[str], Collection[str]]

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text, none empty or with white space at its ends.

        Raises:
            UserError: It fails, or returns something else.
        """
        with reraise_user_code_errors(self.spec, doing=f"it {_failed_on(text)}", what=SPLITTER):
            words = self.split(text)
            if isinstance(words, str):
                raise TypeError("it returns a text, not the words of one")
            return [word for word in map(str.strip, words) if word]


def _failed_on(text: str) -> str:
    return f"fails on a text that begins {text[:_SHOWN]!r}"


def load_splitter(spec: str) -> Callable[[str], list[str]]:
    """Return the word splitter of MODULE:NAME; a class is made here, which may load its model.

    Raises:
        UserError: There is none, or it cannot be called or made.
    """
    found = load_user_code(spec, what=SPLITTER)
    if isinstance(found, type):
        with reraise_user_code_errors(spec, doing="it cannot be made", what=SPLITTER):
            found = found()
    if not callable(found):
        raise UserError(f'the {SPLITTER} "{spec}" is no function from a text to its words')
    return _Split(spec, found)
