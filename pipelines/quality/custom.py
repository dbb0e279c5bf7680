"""Loads and checks custom profiles and word splitters, and reports errors in their code."""

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
    """Return the custom profile of a spec.

    Args:
        spec: MODULE:NAME.
        taken: The names that other profiles already have.

    Raises:
        UserError: There is no such profile, or it is not valid.
    """
    profile = load_user_code(spec, what=PROFILE)
    if not isinstance(profile, Profile):
        raise UserError(
            f'the {PROFILE} "{spec}" has the type {type(profile).__name__}, not '
            "pipelines.quality.Profile"
        )
    for problem in _problems(profile, taken):
        raise UserError(f'the {PROFILE} "{spec}": {problem}')
    assert profile.measure is not None  # see _problems
    guarded = _OneByOne(spec, profile.measure, len(profile.metrics))
    return replace(profile, module=module_of(spec), measure_batch=guarded)


def _problems(profile: Profile, taken: Collection[str]) -> Iterator[str]:
    for name in (profile.family, profile.variant or "a"):
        if not _NAME.fullmatch(name):
            yield f"{name!r} is not a valid name: use lower-case letters and digits, joined by -"
    for name in {profile.name, profile.short} & {*taken}:
        yield f"corpusmill has a profile named {name!r}: choose another family or variant"
    if profile.measure is None:
        yield "it has no function `measure`"
    yield from _invalid_metrics(profile)
    if profile.words not in ("", SPACES, DATATROVE):
        yield f"words is {profile.words!r}, not one of '', {SPACES!r}, {DATATROVE!r}"
    if len(profile.defaults) < len(profile.thresholds):
        yield "two of its thresholds have the same name"
    yield from _invalid_rules(profile)


def _invalid_metrics(profile: Profile) -> Iterator[str]:
    if not profile.metrics or len({*profile.metrics}) < len(profile.metrics):
        yield f"it has no metrics, or two with the same name: {profile.metrics}"
    for metric in profile.metrics:
        if not _METRIC.fullmatch(metric):
            yield f"{metric!r} is not a valid metric name: use lower-case letters, digits and _"


def _invalid_rules(profile: Profile) -> Iterator[str]:
    for threshold in profile.thresholds:
        if not threshold.rule:
            continue
        known = threshold.name.startswith(("min_", "max_")) and threshold.metric in profile.metrics
        if not known:
            ways = " or ".join(f"min_{metric}, max_{metric}" for metric in profile.metrics)
            yield f"its threshold {threshold.name!r} is not named {ways}"
        if not _NAME.fullmatch(threshold.rule):
            yield (
                f"the rule {threshold.rule!r} is not a valid name: use lower-case letters and "
                "digits, joined by -"
            )


@dataclass(frozen=True, slots=True)
class _OneByOne:
    """Measures the texts of a batch one by one; errors name the profile and a line of its code."""

    spec: str
    measure: Measure
    num_metrics: int

    def __call__(self, batch: TextBatch, bounds: Bounds) -> tuple[TextBatch, Sequence[Column]]:
        """Return the texts that the function passes on, and the metrics of all texts.

        Raises:
            UserError: The function fails, or its result is not valid.
        """
        texts = [MeasuredText(batch, at) for at in range(len(batch.strings))]
        measured = [self._measured(text, bounds) for text in texts]
        figures = np.array([figures for _, figures in measured], np.float64)
        passed_on = [text.text for text, _ in measured]
        same = all(map(is_, passed_on, batch.strings))
        columns = list(figures.reshape(len(texts), self.num_metrics).T)
        return (batch if same else batch.with_texts(passed_on)), columns

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
    """A custom word splitter; errors name it and the line of its code."""

    spec: str
    split: Callable[[str], Collection[str]]

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text, stripped of white space; empty words are left out.

        Raises:
            UserError: The splitter fails, or does not return words.
        """
        with reraise_user_code_errors(self.spec, doing=f"it {_failed_on(text)}", what=SPLITTER):
            words = self.split(text)
            if isinstance(words, str):
                raise TypeError("it returns a text, not a list of words")
            return [word for word in map(str.strip, words) if word]


def _failed_on(text: str) -> str:
    return f"fails on a text that begins {text[:_SHOWN]!r}"


def load_splitter(spec: str) -> Callable[[str], list[str]]:
    """Return the word splitter of MODULE:NAME; a class is instantiated, which may load a model.

    Raises:
        UserError: There is no such splitter, or it cannot be instantiated or called.
    """
    found = load_user_code(spec, what=SPLITTER)
    if isinstance(found, type):
        with reraise_user_code_errors(spec, doing="it cannot be instantiated", what=SPLITTER):
            found = found()
    if not callable(found):
        raise UserError(f'the {SPLITTER} "{spec}" is not a function from a text to its words')
    return _Split(spec, found)
