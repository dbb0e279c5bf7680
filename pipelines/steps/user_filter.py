"""A custom filter as a step."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.code import code_hash
from pipelines.corpus.failure import reraise_user_code_errors
from pipelines.quality.catalog import PROFILES, SCORERS
from pipelines.quality.quality import QualityRules
from pipelines.quality.selection import EVERY_LANGUAGE, bound_metrics, bounds_as_json
from pipelines.segments.rows import CLEAN, FilterResult
from pipelines.steps.blocklist import BlockStep
from pipelines.steps.clean import EMPTY, CleanStep, are_blank
from pipelines.steps.decontaminate import DecontaminateStep
from pipelines.steps.fasttext import file_hash
from pipelines.steps.filter_spec import FILTER, QUALITY, READ, FilterSpec
from pipelines.steps.fingerprint import FingerprintStep
from pipelines.steps.judge import QualityFilter
from pipelines.steps.langid import IdentifyStep
from pipelines.steps.pii import MaskStep
from pipelines.steps.scorer import versions_with_hash
from pipelines.steps.step import DEFERRED_REASON, Step, finish_filter, replace_texts
from pipelines.steps.tokenize import TokenizeStep
from shards.errors import UserError

REASON, TEXT = "reason", "text"
"""The keys that a filter may return besides its metrics."""

CHANGED = "changed"
"""The column that says which texts it changed."""


STEPS: tuple[type[Step], ...] = (
    BlockStep, CleanStep, IdentifyStep, QualityFilter,
    DecontaminateStep, MaskStep, TokenizeStep, FingerprintStep,
)  # fmt: skip
"""The steps of the chain (chain.py): figures go by their names and by those of their fields."""

_OTHERS = (READ, "document", "segment")
"""Other keys of figures."""


class UserFilterStep(Step):
    """A function of a batch, in a module of the user's.

    It is given a record batch: `text`, `prompt`, `bytes`, what the corpus keeps of a record (id,
    url …), and from their steps on `language`, `score` and the metrics. It returns a reason or None
    for each text, or a dict with any of `reason`, `text` and its metrics. A class may have

    - `metrics`, names of numbers that it returns: columns NAME.METRIC of the audit table, float32;
    - `bounds`, such as {"min_score": 0.5}: a text whose score is smaller goes. Other bounds can be
      given as options (NAME?min_score=0.3), and tried later on the audit table alone. Every text
      in a language asked for is measured, whichever rule it breaks; the filter gives no reasons;
    - `changes_text = True`, if it returns texts: a column NAME.changed then tells which.

    A reason is in the account as NAME:REASON, a bound's as NAME-low-METRIC, NAME-high-METRIC.
    """

    def __init__(self, spec: FilterSpec) -> None:
        """Load it.

        Args:
            spec: Which filter, with its options.

        Raises:
            UserError: As FilterSpec.load.
        """
        self._spec = spec
        self._filter, self.bounds = spec.load()
        self.name = spec.name
        self.after = spec.after
        """The step that it follows."""
        metrics = getattr(self._filter, "metrics", ())
        if not _is_names(metrics):
            raise UserError(f"--filter {spec}: its `metrics` is {metrics!r}, not a list of names")
        self._changes_text = bool(getattr(self._filter, "changes_text", False))
        self._metrics = tuple(metrics)
        self.fields = tuple(pa.field(f"{self.name}.{name}", pa.float32()) for name in metrics)
        if self._changes_text:
            self.fields += (pa.field(f"{self.name}.{CHANGED}", pa.int32()),)
        if self.bounds:
            self._check_bounds()
            self.needs = (*self.needs, "language")
        self._quality = QualityRules({EVERY_LANGUAGE: (bound_metrics(spec.name, self.bounds),)})
        self.code = code_hash(spec.module)
        given = [f"{name}={_identity(value)}" for name, value in spec.given.items()]
        self.identity = f"{spec.after}={spec}{'?' if given else ''}{'&'.join(given)}"
        """Its spec in the flag; files among its options by their SHA-256."""
        self.library_versions = {
            f"filter {spec}": versions_with_hash(str(spec), {self.identity: self.fact})
        }

    @property
    def fact(self) -> dict[str, Any]:
        """The inputs of its verdicts besides its identity, JSON-able."""
        limits = {"bounds": bounds_as_json(self.bounds)} if self.bounds else {}
        return {"name": self.name, "code": self.code, **limits}

    def _check_bounds(self) -> None:
        known = {f"{side}_{metric}" for side in ("min", "max") for metric in self._metrics}
        odd = self.bounds.keys() - known
        if odd or self._changes_text or self.after != QUALITY:
            raise UserError(
                f"--filter {self._spec} has bounds ({', '.join(self.bounds)}): each is min_ or "
                f"max_ and one of its metrics ({', '.join(self._metrics) or 'it has none'}), and "
                "such a filter changes no texts and follows quality"
            )

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Ask it; add its metrics and take its texts."""
        reasons, texts, metrics = self._asked(batch) if batch.num_rows else ([], None, {})
        batch = self._with(batch, metrics)
        if self.bounds:
            return self._bounded(batch, reasons)
        return self._replaced(batch, texts, reasons)

    def _asked(
        self, batch: pa.RecordBatch
    ) -> tuple[list[str | None], list[str] | None, dict[str, np.ndarray]]:
        """Apply the filter to a batch: return reasons, texts if it changes any, metrics."""
        shown = [name for name in batch.schema.names if name not in (DEFERRED_REASON, CLEAN.name)]
        places = batch["position"]
        doing = f"it fails on a batch of {batch.num_rows} texts, of records at {places[0]} on"
        with reraise_user_code_errors(str(self._spec), doing=doing, what=FILTER):
            said = self._filter(batch.select(shown))
            if said is None:
                raise UserError(
                    f"--filter {self._spec} returned None for a batch of {batch.num_rows} texts: "
                    "it returns a list with None or a reason for each (is there a `return`?)"
                )
            answer = dict(said) if isinstance(said, Mapping) else {REASON: said}
            reasons = self._reasons(answer.pop(REASON, None), batch.num_rows)
            texts = self._texts(answer.pop(TEXT, None), batch)
            return reasons, texts, self._measured(answer, batch.num_rows)

    def _bounded(self, batch: pa.RecordBatch, reasons: Sequence[str | None]) -> FilterResult:
        """Return the verdict that follows from the metrics."""
        if any(reasons):
            raise UserError(
                f"--filter {self._spec} has bounds and returned a reason: it returns metrics "
                "alone, so that other bounds can be tried on them"
            )
        broken = self._quality.reasons(batch)
        return finish_filter(batch, broken, measure_only=self.measure_only)

    def _reasons(self, said: Any, num: int) -> list[str | None]:
        """Return the reasons as the account has them."""
        if said is None:
            return [None] * num
        reasons = _listed(said)
        odd = [one for one in reasons if one is not None and not (one and isinstance(one, str))]
        if odd or isinstance(said, str):
            raise UserError(
                f"--filter {self._spec} returned {said if isinstance(said, str) else odd[0]!r}: it "
                "returns, for each text, None to keep it or a reason to leave it out, a string "
                "that is not empty"
            )
        self._check_number(len(reasons), num, what="reasons")
        return [f"{self.name}:{reason}" if reason is not None else None for reason in reasons]

    def _texts(self, said: Any, batch: pa.RecordBatch) -> list[str] | None:
        if said is None:
            return None
        if not self._changes_text:
            raise UserError(
                f"--filter {self._spec} returned texts: a class that changes them says so with "
                "`changes_text = True`, so that the audit table has a column for it"
            )
        texts = _listed(said)
        self._check_number(len(texts), batch.num_rows, what="texts")
        odd = [one for one in texts if not _is_text(one)]
        if odd:
            raise UserError(
                f"--filter {self._spec} returned {odd[0]!r:.80} as a text: it returns, for each "
                "text, a string of valid Unicode; an unchanged one if it is to stay, an empty "
                "one if it is to go"
            )
        return texts

    def _measured(self, metrics: Mapping[str, Any], num: int) -> dict[str, np.ndarray]:
        """Return the metrics that the filter gave, float32[n] each."""
        unknown = sorted(metrics.keys() - {*self._metrics})
        if unknown:
            raise UserError(
                f"--filter {self._spec} returned {', '.join(map(str, unknown))}, which its "
                f"`metrics` does not name ({', '.join(self._metrics) or 'it has none'})"
            )
        values = {name: np.asarray(_listed(given), np.float32) for name, given in metrics.items()}
        for name, given in values.items():
            self._check_number(len(given), num, what=f"values of {name}")
        return values

    def _with(self, batch: pa.RecordBatch, metrics: Mapping[str, np.ndarray]) -> pa.RecordBatch:
        """Return the batch with the filter's metrics, null where it gave none."""
        none = np.full(batch.num_rows, np.nan, np.float32)
        for name in self._metrics:
            column = pa.array(metrics.get(name, none), from_pandas=True)
            batch = batch.append_column(f"{self.name}.{name}", column)
        return batch

    def _replaced(
        self, batch: pa.RecordBatch, texts: list[str] | None, reasons: list[str | None]
    ) -> FilterResult:
        """Return the verdict on the batch with the filter's texts; emptied ones go."""
        column = pa.array(reasons, pa.string())
        if not self._changes_text:
            return FilterResult(batch, column)
        changed = np.zeros(batch.num_rows, bool)
        if texts is not None:
            changed = pc.not_equal(batch["text"], pa.array(texts, pa.large_string())).to_numpy(
                zero_copy_only=False
            )
            batch = replace_texts(batch, "text", texts, changed=changed)
            emptied = pa.array(changed & are_blank(batch["text"]))
            column = pc.if_else(pc.and_(emptied, column.is_null()), EMPTY, column)
        name = f"{self.name}.{CHANGED}"
        return FilterResult(batch.append_column(name, pa.array(changed.astype(np.int32))), column)

    def _check_number(self, given: int, wanted: int, *, what: str) -> None:
        if given != wanted:
            raise UserError(f"--filter {self._spec} returned {given} {what} for {wanted} texts")


def load_filters(specs: Sequence[FilterSpec]) -> list[UserFilterStep]:
    """Return the filters of a run.

    Raises:
        UserError: Two have the same name, or one that is taken; or as UserFilterStep.
    """
    names = [spec.name for spec in specs]
    fields = {field.name.partition(".")[0] for step in STEPS for field in step.fields}
    steps = {*_OTHERS, *fields, *(step.name for step in STEPS)}
    ours = {*steps, *SCORERS, *(profile.short for profile in PROFILES)}
    if taken := sorted(ours.intersection(names)):
        raise UserError(
            f"a filter cannot be called {taken[0]!r}: a step, rule or model of corpusmill is "
            "called so, and figures and reasons go by these names"
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UserError(f"two filters are called {twice!r}: give each one its own name")
    return [UserFilterStep(spec) for spec in specs]


def _listed(said: Any) -> list[Any]:
    """Return the result of a filter as a list: of a list, numpy, Arrow or pandas."""
    if isinstance(said, pa.Array | pa.ChunkedArray):
        return list(said.to_pylist())
    return list(said.tolist() if hasattr(said, "tolist") else said)


def _is_names(metrics: Any) -> bool:
    return isinstance(metrics, list | tuple) and all(isinstance(name, str) for name in metrics)


def _is_text(said: Any) -> bool:
    if not isinstance(said, str):
        return False
    try:
        said.encode()
    except UnicodeEncodeError:  # half of a character of UTF-16
        return False
    return True


def _identity(value: str) -> str:
    with suppress(OSError, ValueError):  # a value that no path can be
        if Path(value).is_file():
            return f"sha256:{file_hash(Path(value))}"
    return value
