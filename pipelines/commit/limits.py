"""Checks after the stage `map` that few records are unreadable, and that documents are left."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.commit.account import expected_account, segment_tallies
from pipelines.corpus.sources import Corpus
from pipelines.corpus.unreadable import UnreadableSource
from pipelines.process.processor import ProcessRecord
from pipelines.quality.profile import Rule
from pipelines.read.files import InputFile
from pipelines.read.json_object import parse_object
from pipelines.read.record import Damage, Record
from pipelines.segments.rows import QUARANTINED
from pipelines.segments.segment import Segment
from shards.errors import UserError
from shards.storage.remote import AnyPath
from shards.tables import open_table

_EXAMPLES = 100
"""The maximum number of rejected records that are searched for an example."""

_REASONS = 3
"""The maximum number of reasons for which a message names a flag."""

_FLAGS = {
    "language": "--languages selects the languages to keep, or all",
    "language-score": "--language-threshold sets the lowest score",
    "too-short": "--min-chars sets the fewest characters of a document",
    "contaminated": "--decontaminate names the benchmarks that they overlap with",
    "url-blocklist": "--url-blocklist blocks their addresses",
}
"""For some of the reasons to drop a document, the flag that controls how often they occur."""


@dataclass(frozen=True)
class UnreadableShare:
    """The part of the input that cannot be read."""

    reasons: Counter[str]
    """The number of unreadable records, by reason."""
    records: float
    """The share of unreadable records among all records."""
    bytes: float
    """The share of unreadable records' bytes among the bytes of all records."""

    @property
    def rate(self) -> float:
        """The share of records or the share of bytes, whichever is larger."""
        return max(self.records, self.bytes)


def unreadable_share(records: Iterable[ProcessRecord]) -> UnreadableShare:
    """Return the unreadable share of a run's input; the cut-off end of a file counts as no record.

    Args:
        records: The records of all items of `map`.
    """
    items = [*records]
    splits = [split for item in items for split in item.splits]
    cut = Counter(split.cut for split in splits if split.cut)
    reasons: Counter[str] = Counter()
    rows = 0
    for _, tally in segment_tallies(items):
        rows += tally.rows
        if tally.verdict == QUARANTINED:
            reasons[tally.reason] += tally.rows
    reasons, rows = reasons - cut, rows - cut.total()
    lost = sum(split.unread_bytes for split in splits)
    all_bytes = sum(split.bytes for split in splits)
    return UnreadableShare(reasons, reasons.total() / max(1, rows), lost / max(1, all_bytes))


def unreadable_sources(records: Iterable[ProcessRecord]) -> set[str]:
    """Return the sources that have records but no readable records."""
    verdicts: dict[str, set[str]] = {}
    for source, tally in segment_tallies(records):
        if tally.rows:
            verdicts.setdefault(source, set()).add(tally.verdict)
    return {source for source, found in verdicts.items() if found == {QUARANTINED}}


def check_rejects(
    records: Sequence[ProcessRecord],
    files: Sequence[InputFile],
    *,
    corpora: Mapping[str, Corpus],
    most: float,
    folder: AnyPath,
) -> None:
    """Check that not too many records are unreadable.

    Args:
        records: The records of all items of `map`.
        files: The input files; empty for a custom pipeline, whose files are unknown.
        corpora: The corpus of each source.
        most: The maximum share of records, and of bytes, that may be unreadable.
        folder: The folder of the segments.

    Raises:
        UserError: A larger share is unreadable; the message shows an unreadable record.
    """
    share = unreadable_share(records)
    if share.rate <= most:
        return
    reasons = share.reasons.most_common()
    counts = ", ".join(f"{rows:,} {reason}" for reason, rows in reasons)
    paths = {file.name: file.path for file in files}
    example = ""
    if paths:
        example = _example(records, reasons[0][0], corpora=corpora, paths=paths, folder=folder)
    raise UserError(
        f"{100 * share.records:.2f} % of the records, with {100 * share.bytes:.2f} % of the bytes, "
        f"cannot be read ({counts}), more than --max-reject-rate {most:g} allows. {example}Correct "
        "the input, or allow more, and run the same command again. The first bytes of these "
        f"records are in {folder}/*.rejects (Arrow files)"
    )


def _example(
    records: Sequence[ProcessRecord],
    reason: str,
    *,
    corpora: Mapping[str, Corpus],
    paths: Mapping[tuple[str, str], str],
    folder: AnyPath,
) -> str:
    """Return sentences that show the first record that was rejected for a reason."""
    for record in records:
        for segment in record.segments:
            if segment.rejects and any(tally.reason == reason for tally in segment.tallies):
                found = UnreadableSource(corpora[record.source], record.source)
                for path, item in _rejected(segment, reason, folder=folder):
                    found.add(paths.get((record.source, path), path), item, reason)
                return f"{found.example()} "
    return ""


def _rejected(
    segment: Segment, reason: str, *, folder: AnyPath
) -> list[tuple[str, Record | Damage]]:
    """Return some records of a segment that were rejected for a reason, each with its file."""
    table = open_table(folder / f"{segment.stem}.rejects").sort_by(
        [(name, "ascending") for name in ("path", "position")]
    )
    rows = (row for row in table.to_pylist() if row["reason"] == reason)
    return [(row["path"], _item(row)) for row, _ in zip(rows, range(_EXAMPLES), strict=False)]


def _item(row: Mapping[str, Any]) -> Record | Damage:
    place, raw = (row["position"], row["length"]), row["raw"]
    value = parse_object(raw)
    return Damage(*place, row["reason"], raw) if value is None else Record(*place, value, raw)


def check_kept(records: Sequence[ProcessRecord], rules: Iterable[Rule]) -> None:
    """Check that at least one document is left.

    Args:
        records: The records of all items of `map`.
        rules: The quality rules of the run.

    Raises:
        UserError: No document is left; the message names the rules that dropped the most documents.
    """
    if any(segment.documents for record in records for segment in record.segments):
        return
    reasons: Counter[str] = Counter()
    for (_, _, reason), rows in expected_account(records, []).items():
        reasons[reason] += rows
    counts = ", ".join(f"{rows:,} {reason}" for reason, rows in reasons.most_common())
    hints = {**_FLAGS, **{rule.reason: _hint(rule) for rule in reversed([*rules])}}
    named = [hints[reason] for reason, _ in reasons.most_common(_REASONS) if reason in hints]
    raise UserError(
        f"no document of this input is left ({counts or 'it has no records'}): "
        f"{'; '.join(named) or 'check the options of the corpus'}"
    )


def _hint(rule: Rule) -> str:
    bound = f"{rule.profile.partition('@')[0]}.{rule.threshold}"
    return f"{rule.reason} is a rule of --quality, {bound}={rule.bound:g}: --threshold {bound}=N"
