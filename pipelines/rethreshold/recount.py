"""What thresholds keep, counted from the metrics in audit tables, not from the texts.

Steps are numbered in the order in which a text meets them: the language, its score, then each rule
of the language. A text is dropped by the first step that it breaks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.quality import Rule
from pipelines.quality.catalog import REASONS
from pipelines.quality.verdict import first_broken, language_codes, metric_columns
from pipelines.run.origin import Thresholds
from pipelines.segments.rows import DUPLICATE
from shards.errors import DamageError
from shards.storage.files import FileEntry, whole_bytes
from shards.storage.remote import AnyPath

LANGUAGE, SCORE, FIRST_RULE = 0, 1, 2
"""Steps."""

DOCUMENTS, BYTES, TOKENS = range(3)
"""Amounts."""

NOW, THEN = range(2)
"""With the dataset's own thresholds, and with the other ones."""


class Fate(IntEnum):
    """What the run did with a text."""

    KEPT = 0
    DEDUPLICATED = 1
    SCREENED = 2
    """Dropped between the rules and dedup."""
    EXCLUDED = 3
    """Dropped by a step."""


_FATES: dict[str | None, Fate] = {
    **dict.fromkeys((DUPLICATE, f"near-{DUPLICATE}"), Fate.DEDUPLICATED),
    **dict.fromkeys(("language", "language-score", *REASONS), Fate.EXCLUDED),
}
"""By reason, without those of scorers and of profiles of one's own.

The others are those of SCREENED texts.
"""

_BATCH_ROWS = 1 << 17

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Recount:
    """What two sets of thresholds do to the texts of one source in one language."""

    dropped: Counts
    """int64[2, steps], texts that a step drops, now and then."""
    broken: Counts
    """int64[2, steps], texts in a wanted language that break a step, whichever one drops them."""
    passed: Counts
    """int64[2, fates, 3], texts that break no step: their number, bytes and tokens."""

    @classmethod
    def zero(cls, num_rules: int) -> "Recount":
        """Return the counts of no texts."""
        steps = (2, FIRST_RULE + num_rules)
        return cls(
            dropped=np.zeros(steps, np.int64),
            broken=np.zeros(steps, np.int64),
            passed=np.zeros((2, len(Fate), 3), np.int64),
        )

    def add(self, when: int, broken: npt.NDArray[np.bool_], rows: "_Rows") -> None:
        """Count texts.

        Args:
            when: NOW or THEN.
            broken: bool[steps, n], which steps each text breaks.
            rows: The texts.
        """
        dropped = broken.any(axis=0)
        steps = np.argmax(broken[:, dropped], axis=0)
        self.dropped[when] += np.bincount(steps, minlength=len(broken))
        self.broken[when] += broken.sum(axis=1)
        for fate in Fate:
            passed = ~dropped & (rows.fates == fate)
            self.passed[when, fate] += [int(column[passed].sum()) for column in rows.amounts]


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
    """Records that were dropped before their language was looked at, by reason."""


def recount(
    tables: Iterable[tuple[AnyPath, FileEntry]], now: Thresholds, then: Thresholds
) -> SourceRecount:
    """Return what thresholds do to the texts in some audit tables.

    Both have the same profiles, and `then` has no rules for a language that `now` left out.

    Args:
        tables: Path of each, and what the manifest says of it.
        now: The thresholds that they were made with.
        then: The other ones.

    Raises:
        DamageError: A table is missing or damaged, lacks a column, or was not made with the
            thresholds `now`.
    """
    source = SourceRecount()
    for path, entry in tables:
        for batch in _batches(path, entry, _columns(then)):
            _add(source, batch, (now, then), path=path)
    return source


def _columns(thresholds: Thresholds) -> list[str]:
    metrics = {
        rule.metric
        for profiles in thresholds.selection.values()
        for bound_profile in profiles
        for rule in bound_profile.profile.rules(bound_profile.bounds)
    }
    return ["language", "score", "reason", "bytes", "tokens", *sorted(metrics)]


def _batches(path: AnyPath, entry: FileEntry, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    content = pa.py_buffer(whole_bytes(path, entry))
    try:
        file = pq.ParquetFile(content, read_dictionary=["language", "reason"])
    except (OSError, pa.ArrowException) as error:
        raise DamageError(
            f"{path} cannot be read ({error}): restore the audit table from a copy, or build the "
            "dataset again."
        ) from error
    missing = sorted(set(columns) - set(file.schema_arrow.names))
    if missing:
        raise DamageError(
            f"{path} has no column {missing[0]}, although the manifest says that it was measured: "
            "build the dataset again."
        )
    yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns))


def _add(
    source: SourceRecount,
    batch: pa.RecordBatch,
    both: tuple[Thresholds, Thresholds],
    *,
    path: AnyPath,
) -> None:
    languages, codes = language_codes(batch["language"])
    reasons, reason_codes = language_codes(batch["reason"])
    for code, num in enumerate(_counts(reason_codes[codes < 0], len(reasons))):
        if num:
            reason = str(reasons[code])
            source.unjudged[reason] = source.unjudged.get(reason, 0) + num
    fates = _fates(reasons, both[NOW])[reason_codes]
    for code in np.flatnonzero(_counts(codes, len(languages))).tolist():
        language, indices = str(languages[code]), np.flatnonzero(codes == code)
        counts = source.languages.setdefault(language, Recount.zero(len(both[NOW].rules(language))))
        table = batch.take(indices) if len(indices) < len(batch) else batch
        rows = _Rows(fates=fates[indices], amounts=_amounts(table))
        for when, thresholds in enumerate(both):
            broken = _broken(table, thresholds, language)
            if when == NOW and ((rows.fates == Fate.EXCLUDED) != broken.any(axis=0)).any():
                raise DamageError(
                    f"{path}: the metrics of a text in {language!r} do not lead to the verdict "
                    "beside them, so another version of the profiles made it. Build the dataset "
                    "again with this version."
                )
            counts.add(when, broken, rows)


def _counts(codes: npt.NDArray[np.int32], num: int) -> list[int]:
    counts: list[int] = np.bincount(codes[codes >= 0], minlength=num).tolist()
    return counts


def _fates(reasons: Sequence[str | None], now: Thresholds) -> npt.NDArray[np.int8]:
    """Return the fate that each reason means, and last that of having none."""
    known: dict[str | None, Fate] = {**_FATES}
    known |= dict.fromkeys(now.reasons, Fate.EXCLUDED)
    fates = [known.get(reason, Fate.SCREENED) for reason in reasons]
    return np.array([*fates, Fate.KEPT], np.int8)


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
