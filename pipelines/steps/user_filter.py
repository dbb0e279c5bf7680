"""The step that applies a custom filter."""

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
"""The keys of a filter's result, besides its metrics."""

CHANGED = "changed"
"""The name of the column that shows which texts a filter changed."""


STEPS: tuple[type[Step], ...] = (
    BlockStep, CleanStep, IdentifyStep, QualityFilter,
    DecontaminateStep, MaskStep, TokenizeStep, FingerprintStep,
)  # fmt: skip
"""The built-in steps; the report's figures use the names of the steps and of their fields."""

_OTHERS = (READ, "document", "segment")
"""Other keys of the report's figures."""


class UserFilterStep(Step):
    """A custom function of a batch.

    The function gets a record batch with the columns `text`, `prompt`, `bytes`, those that the
    corpus keeps of a record (id, url …), and the columns of earlier steps: `language`, `score` and
    metrics. It returns a reason or None for each text, or a dict with any of `reason`, `text` and
    its metrics. A class may have

    - `metrics`, the names of numbers that it returns: columns NAME.METRIC of the audit table,
      float32;
    - `bounds`, such as {"min_score": 0.5}, which drops texts with a smaller score. Options set
      other bounds (NAME?min_score=0.3), and `rethreshold` can try them later. Every text in a
      wanted language is measured, even if it breaks a rule; the filter returns no reasons;
    - `changes_text = True`, if it returns texts: a column NAME.changed then shows which texts
      changed.

    In the account, a reason is NAME:REASON, and a bound is NAME-low-METRIC or NAME-high-METRIC.
    """

    def __init__(self, spec: FilterSpec) -> None:
        """Load the filter.

        Args:
            spec: The filter and its options.

        Raises:
            UserError: The filter cannot be loaded, or its metrics or bounds are not valid.
        """
        self._spec = spec
        self._filter, self.bounds = spec.load()
        self.name = spec.name
        self.after = spec.after
        """The step that the filter follows."""
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
        options = [f"{name}={_identity(value)}" for name, value in spec.options.items()]
        self.identity = f"{spec.after}={spec}{'?' if options else ''}{'&'.join(options)}"
        """The value of the flag, with the SHA-256 of files among the options."""
        self.library_versions = {
            f"filter {spec}": versions_with_hash(str(spec), {self.identity: self.settings})
        }

    @property
    def settings(self) -> dict[str, Any]:
        """Everything besides the identity that affects the filter's results, as JSON values."""
        bounds = {"bounds": bounds_as_json(self.bounds)} if self.bounds else {}
        return {"name": self.name, "code": self.code, **bounds}

    def _check_bounds(self) -> None:
        known = {f"{side}_{metric}" for side in ("min", "max") for metric in self._metrics}
        unknown = self.bounds.keys() - known
        if unknown or self._changes_text or self.after != QUALITY:
            raise UserError(
                f"--filter {self._spec} has bounds ({', '.join(self.bounds)}): each bound must be "
                f"named min_ or max_ and a metric ({', '.join(self._metrics) or 'it has none'}), "
                "and such a filter must not change texts and must follow quality"
            )

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Apply the filter; add its metrics, and replace the texts that it changes."""
        reasons, texts, metrics = self._call_filter(batch) if batch.num_rows else ([], None, {})
        batch = self._with_metrics(batch, metrics)
        if self.bounds:
            return self._judged(batch, reasons)
        return self._with_texts(batch, texts, reasons)

    def _call_filter(
        self, batch: pa.RecordBatch
    ) -> tuple[list[str | None], list[str] | None, dict[str, np.ndarray]]:
        """Return the reasons, the texts if the filter returned any, and the metrics of a batch."""
        shown = [name for name in batch.schema.names if name not in (DEFERRED_REASON, CLEAN.name)]
        places = batch["position"]
        doing = f"it fails on a batch of {batch.num_rows} texts, from the record at {places[0]} on"
        with reraise_user_code_errors(str(self._spec), doing=doing, what=FILTER):
            returned = self._filter(batch.select(shown))
            if returned is None:
                raise UserError(
                    f"--filter {self._spec} returned None for a batch of {batch.num_rows} texts: "
                    "it must return a list with None or a reason for each (is a `return` missing?)"
                )
            columns = dict(returned) if isinstance(returned, Mapping) else {REASON: returned}
            reasons = self._reasons(columns.pop(REASON, None), batch.num_rows)
            texts = self._texts(columns.pop(TEXT, None), batch)
            return reasons, texts, self._measured(columns, batch.num_rows)

    def _judged(self, batch: pa.RecordBatch, reasons: Sequence[str | None]) -> FilterResult:
        """Return the result of comparing the metrics with the bounds."""
        if any(reasons):
            raise UserError(
                f"--filter {self._spec} has bounds and returned a reason: it must return only "
                "metrics, so that other bounds can be tried on them"
            )
        broken = self._quality.reasons(batch)
        return finish_filter(batch, broken, measure_only=self.measure_only)

    def _reasons(self, returned: Any, num: int) -> list[str | None]:
        """Return the filter's reasons with their names in the account."""
        if returned is None:
            return [None] * num
        reasons = _as_list(returned)
        wrong = [one for one in reasons if one is not None and not (one and isinstance(one, str))]
        if wrong or isinstance(returned, str):
            shown = returned if isinstance(returned, str) else wrong[0]
            raise UserError(
                f"--filter {self._spec} returned {shown!r}: it must return, for each text, None to "
                "keep it, or a reason to drop it, which is a string that is not empty"
            )
        self._check_number(len(reasons), num, what="reasons")
        return [f"{self.name}:{reason}" if reason is not None else None for reason in reasons]

    def _texts(self, returned: Any, batch: pa.RecordBatch) -> list[str] | None:
        if returned is None:
            return None
        if not self._changes_text:
            raise UserError(
                f"--filter {self._spec} returned texts: a class that changes texts must have "
                "`changes_text = True`, so that the audit table has a column for it"
            )
        texts = _as_list(returned)
        self._check_number(len(texts), batch.num_rows, what="texts")
        wrong = [one for one in texts if not _is_text(one)]
        if wrong:
            raise UserError(
                f"--filter {self._spec} returned {wrong[0]!r:.80} as a text: it must return, for "
                "each text, a string of valid Unicode: the same text to keep it, or an empty "
                "string to drop it"
            )
        return texts

    def _measured(self, metrics: Mapping[str, Any], num: int) -> dict[str, np.ndarray]:
        """Return the metrics that the filter returned, each as float32[n]."""
        unknown = sorted(metrics.keys() - {*self._metrics})
        if unknown:
            raise UserError(
                f"--filter {self._spec} returned {', '.join(map(str, unknown))}, which its "
                f"`metrics` does not name ({', '.join(self._metrics) or 'it has none'})"
            )
        values = {name: np.asarray(_as_list(given), np.float32) for name, given in metrics.items()}
        for name, given in values.items():
            self._check_number(len(given), num, what=f"values of {name}")
        return values

    def _with_metrics(
        self, batch: pa.RecordBatch, metrics: Mapping[str, np.ndarray]
    ) -> pa.RecordBatch:
        """Return the batch with the filter's metrics; null if the filter did not return them."""
        none = np.full(batch.num_rows, np.nan, np.float32)
        for name in self._metrics:
            column = pa.array(metrics.get(name, none), from_pandas=True)
            batch = batch.append_column(f"{self.name}.{name}", column)
        return batch

    def _with_texts(
        self, batch: pa.RecordBatch, texts: list[str] | None, reasons: list[str | None]
    ) -> FilterResult:
        """Return the result with the filter's texts in the batch; emptied texts are dropped."""
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
        UserError: Two filters have the same name, a name is taken, or a filter is not valid.
    """
    names = [spec.name for spec in specs]
    fields = {field.name.partition(".")[0] for step in STEPS for field in step.fields}
    steps = {*_OTHERS, *fields, *(step.name for step in STEPS)}
    ours = {*steps, *SCORERS, *(profile.short for profile in PROFILES)}
    if taken := sorted(ours.intersection(names)):
        raise UserError(
            f"a filter cannot be named {taken[0]!r}: a step, rule or model of corpusmill has this "
            "name, and figures and reasons are listed by name"
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UserError(f"two filters are named {twice!r}: give each filter its own name")
    return [UserFilterStep(spec) for spec in specs]


def _as_list(values: Any) -> list[Any]:
    """Return as a list a column that a filter returned, perhaps from numpy, Arrow or pandas."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return list(values.to_pylist())
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _is_names(metrics: Any) -> bool:
    return isinstance(metrics, list | tuple) and all(isinstance(name, str) for name in metrics)


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _identity(value: str) -> str:
    with suppress(OSError, ValueError):  # the value cannot be a path
        if Path(value).is_file():
            return f"sha256:{file_hash(Path(value))}"
    return value
