"""What thresholds keep, counted from the metrics in audit tables instead of the texts.

Steps are numbered as a text meets them: the language, its score, then each rule of the language.
A text falls at the first step that it breaks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.quality import Quality, Rule
from pipelines.quality.verdict import first_broken, language_codes, metric_columns
from pipelines.run.origin import Thresholds
from pipelines.segments.rows import DUPLICATE
from shards.errors import DamageError
from shards.storage.files import map_bytes
from shards.storage.remote import AnyPath

LANGUAGE, SCORE, FIRST_RULE = 0, 1, 2
"""Steps."""

KEPT, DOUBLE, LATER, RULED = range(4)
"""What became of a text: kept, dropped by dedup, dropped between the rules and dedup, by a step."""

DOCUMENTS, BYTES, TOKENS = range(3)

NOW, THEN = range(2)
"""With the dataset's own thresholds, and with the others."""

_DEDUP_REASONS = (DUPLICATE, f"near-{DUPLICATE}")
_STEP_REASONS = frozenset({"language", "language-score", *Quality.all_reasons})
_BATCH_ROWS = 1 << 17

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Recount:
    """What two sets of thresholds do to the texts of one source in one language."""

    first: Counts
    """int64[2, steps], texts that fall at a step, now and then."""
    broken: Counts
    """int64[2, steps], texts in a language asked for that break it, wherever they fall."""
    passed: Counts
    """int64[2, 4, 3], texts that break nothing, by what became of them: number, bytes, tokens."""

    @classmethod
    def zero(cls, num_rules: int) -> "Recount":
        """Return the counts of no text."""
        steps = (2, FIRST_RULE + num_rules)
        return cls(
            first=np.zeros(steps, np.int64),
            broken=np.zeros(steps, np.int64),
            passed=np.zeros((2, 4, 3), np.int64),
        )

    def add(self, when: int, broken: npt.NDArray[np.bool_], rows: "_Rows") -> None:
        """Count texts.

        Args:
            when: NOW or THEN.
            broken: bool[steps, n], which step each text breaks.
            rows: The texts.
        """
        falls = broken.any(axis=0)
        steps = np.argmax(broken[:, falls], axis=0)
        self.first[when] += np.bincount(steps, minlength=len(broken))
        self.broken[when] += broken.sum(axis=1)
        for fate in range(4):
            chosen = ~falls & (rows.fates == fate)
            self.passed[when, fate] += [int(column[chosen].sum()) for column in rows.amounts]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """Texts in one language."""

    fates: npt.NDArray[np.int8]
    amounts: tuple[Counts, Counts, Counts]
    """1, bytes and tokens of each."""


@dataclass(kw_only=True)
class SourceRecount:
    """All of one source."""

    languages: dict[str, Recount] = field(default_factory=dict)
    unjudged: dict[str, int] = field(default_factory=dict)
    """Records that had fallen before their language was asked for, by reason."""


def recount(paths: Iterable[AnyPath], now: Thresholds, then: Thresholds) -> SourceRecount:
    """Return what thresholds do to the texts in some audit tables.

    Both have the same profiles, and `then` no rules for a language that `now` left out.

    Raises:
        DamageError: A table is not there, lacks a column, or was not made with the thresholds
            `now`.
    """
    found = SourceRecount()
    for path in paths:
        for batch in _batches(path, _columns(then)):
            _add(found, batch, (now, then), path=path)
    return found


def _columns(thresholds: Thresholds) -> list[str]:
    metrics = {
        rule.metric
        for chosen in thresholds.selection.values()
        for each in chosen
        for rule in each.profile.rules(each.bounds)
    }
    return ["language", "score", "reason", "bytes", "tokens", *sorted(metrics)]


def _batches(path: AnyPath, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        file = pq.ParquetFile(pa.py_buffer(map_bytes(path)), read_dictionary=["language", "reason"])
    except (OSError, pa.ArrowException) as error:
        raise DamageError(
            f"{path} cannot be read ({error}): restore the audit table from a copy, or build the "
            "dataset again."
        ) from error
    missing = sorted(set(columns) - set(file.schema_arrow.names))
    if missing:
        raise DamageError(
            f"{path} has no column {missing[0]}, though the manifest says that it was measured: "
            "build the dataset again."
        )
    yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns))


def _add(
    found: SourceRecount,
    batch: pa.RecordBatch,
    both: tuple[Thresholds, Thresholds],
    *,
    path: AnyPath,
) -> None:
    languages, codes = language_codes(batch["language"])
    reasons, reason_codes = language_codes(batch["reason"])
    for code, num in enumerate(_counted(reason_codes[codes < 0], len(reasons))):
        if num:
            reason = str(reasons[code])
            found.unjudged[reason] = found.unjudged.get(reason, 0) + num
    fates = _fates(reasons)[reason_codes]
    for code in np.flatnonzero(_counted(codes, len(languages))).tolist():
        language, at = str(languages[code]), np.flatnonzero(codes == code)
        counts = found.languages.setdefault(language, Recount.zero(len(both[NOW].rules(language))))
        table = batch.take(at) if len(at) < len(batch) else batch
        rows = _Rows(fates=fates[at], amounts=_amounts(table))
        for when, thresholds in enumerate(both):
            broken = _broken(table, thresholds, language)
            if when == NOW and ((rows.fates == RULED) != broken.any(axis=0)).any():
                raise DamageError(
                    f"{path}: the metrics of a text in {language!r} do not lead to the verdict "
                    "beside them: another version of the profiles made it. Build the dataset "
                    "again with this one."
                )
            counts.add(when, broken, rows)


def _counted(codes: npt.NDArray[np.int32], num: int) -> list[int]:
    counts: list[int] = np.bincount(codes[codes >= 0], minlength=num).tolist()
    return counts


def _fates(reasons: Sequence[str | None]) -> npt.NDArray[np.int8]:
    """Return the fate of each reason, and last that of having none."""
    fates = [
        DOUBLE if reason in _DEDUP_REASONS else RULED if reason in _STEP_REASONS else LATER
        for reason in reasons
    ]
    return np.array([*fates, KEPT], np.int8)


def _amounts(table: pa.RecordBatch) -> tuple[Counts, Counts, Counts]:
    size, tokens = (
        table[name].fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        for name in ("bytes", "tokens")
    )
    return np.ones(len(size), np.int64), size, tokens


def _broken(table: pa.RecordBatch, thresholds: Thresholds, language: str) -> npt.NDArray[np.bool_]:
    rules: Sequence[Rule] = thresholds.rules(language)
    broken = np.zeros((FIRST_RULE + len(rules), table.num_rows), bool)
    if not thresholds.wants(language):
        broken[LANGUAGE] = True
        return broken
    score = table["score"].to_numpy(zero_copy_only=False)
    broken[SCORE] = score < np.float32(thresholds.score)
    metrics = metric_columns(table, [rule.metric for rule in rules])
    for step, rule in enumerate(rules, FIRST_RULE):
        broken[step] = first_broken([rule], {rule.metric: metrics[rule.metric]}) == 0
    return broken
