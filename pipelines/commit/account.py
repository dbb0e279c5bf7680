"""The account of a run: how many records were read, kept and dropped, and for which reasons.

The account is computed twice: from the records of `map` and of dedup, and from the final audit
rows. If the two accounts differ, the run fails.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipelines.commit.unknown import Unknown, unknown_lines
from pipelines.dedup.items import DedupRecord
from pipelines.merge.items import MergeRecord
from pipelines.process.processor import ProcessRecord
from pipelines.read.listing import Listing
from pipelines.report.write import PAGE, REPORT
from pipelines.segments.audit import Tally
from pipelines.segments.rows import DROPPED, KEPT, QUARANTINED
from shards.commands.output import quantity
from shards.commands.table import called
from shards.errors import DamageError
from shards.manifest import TRAIN, VALIDATION, Manifest, sum_shards
from shards.storage.remote import AnyPath

Account = Counter[tuple[str, str, str]]
"""The number of rows by source, verdict and reason."""


def expected_account(records: Iterable[ProcessRecord], dedup: Iterable[DedupRecord]) -> Account:
    """Return the account that follows from the records of `map` and of dedup."""
    account = _summed(segment_tallies(records))
    for drops in dedup:
        for source, reasons in drops.dropped.items():
            for reason, dropped in reasons.items():
                account[source, KEPT, ""] -= dropped
                account[source, DROPPED, reason] += dropped
    return +account


def final_account(merged: Mapping[str, Sequence[MergeRecord]]) -> Account:
    """Return the account that follows from the final audit rows of all sources."""
    return +_summed(_audited(merged))


def check_account(
    records: Sequence[ProcessRecord],
    dedup: Sequence[DedupRecord],
    merged: Mapping[str, Sequence[MergeRecord]],
) -> None:
    """Check that both accounts agree in rows and bytes, and that the shards contain all kept rows.

    Raises:
        DamageError: The accounts disagree, because a row was lost or counted twice.
    """
    expected, final = expected_account(records, dedup), final_account(merged)
    if expected != final:
        odd = sorted((expected - final) + (final - expected))[0]
        raise _unbalanced(" ".join(odd), expected[odd], final[odd])
    read, audited = (
        sum(tally.bytes for _, tally in tallies)
        for tallies in (segment_tallies(records), _audited(merged))
    )
    if read != audited:
        raise _unbalanced("bytes", read, audited)
    for source, items in merged.items():
        shards = [shard for record in items for shard in (*record.shards, *record.validation)]
        documents = sum(shard.documents for shard in shards)
        if documents != final[source, KEPT, ""]:
            raise _unbalanced(f"{source} documents", final[source, KEPT, ""], documents)


def _unbalanced(what: str, expected: int, actual: int) -> DamageError:
    return DamageError(
        f"the account does not balance: {what}: {expected:,} in the segments, {actual:,} in the "
        "result. Files in .work were changed or lost: delete that folder and run the same command "
        "again"
    )


def accounting(
    account: Account,
    records: Sequence[ProcessRecord],
    merged: Mapping[str, Sequence[MergeRecord]],
) -> dict[str, Any]:
    """Return the account by source, as in the manifest; all figures except `bytes` count rows.

    Args:
        account: The number of rows by source, verdict and reason.
        records: The records of all items of `map`.
        merged: The records of the merge, by source.
    """
    sizes: Counter[tuple[str, str]] = Counter()
    for source, tally in _audited(merged):
        sizes[source, tally.verdict] += tally.bytes
    return {
        source: {
            "read": sum(rows for (name, _, _), rows in account.items() if name == source),
            "kept": account[source, KEPT, ""],
            "dropped": _reasons(account, source, DROPPED),
            "quarantined": _reasons(account, source, QUARANTINED),
            "fanned_out": sum(
                segment.fanned_out
                for record in records
                if record.source == source
                for segment in record.segments
            ),
            "not_sampled": sum(item.unsampled for item in records if item.source == source),
            "bytes": {verdict: sizes[source, verdict] for verdict in (KEPT, DROPPED, QUARANTINED)},
            "groups": _groups(merged.get(source, ())),
        }
        for source in sorted({record.source for record in records})
    }


def _groups(merged: Sequence[MergeRecord]) -> dict[str, dict[str, dict[str, int]]]:
    """Return the numbers of rows and bytes by group and verdict; empty if there are no groups."""
    groups: dict[str, dict[str, dict[str, int]]] = {}
    for tally in (tally for record in merged for tally in record.tallies):
        figures = groups.setdefault(tally.group, {}).setdefault(tally.verdict, Counter())
        figures["rows"] += tally.rows
        figures["bytes"] += tally.bytes
    if set(groups) <= {""}:
        return {}
    return {
        group: {verdict: dict(groups[group][verdict]) for verdict in sorted(groups[group])}
        for group in sorted(groups)
    }


def _reasons(account: Account, source: str, verdict: str) -> dict[str, int]:
    return {
        reason: rows
        for (row_source, row_verdict, reason), rows in sorted(account.items())
        if (row_source, row_verdict) == (source, verdict)
    }


def closing_lines(
    account: Mapping[str, Any],
    made: Manifest,
    output: AnyPath,
    *,
    left_out: Mapping[str, int],
    cut: Listing,
    unknown: Unknown,
) -> list[str]:
    """Return the last lines of a run's log: the account, the shards, the dataset and the report.

    Args:
        account: The account from the manifest.
        made: The manifest of the run.
        output: The folder of the dataset.
        left_out: For each source that has unreadable files or folders, the number of them.
        cut: The problems of files that were read although their end is missing.
        unknown: The counts of unknown tokens; empty if the tokenizer can spell everything.
    """
    shown = []
    for source, figures in account.items():
        dropped, rejected = figures["dropped"], figures["quarantined"]
        shown.append(
            f"{source}: {figures['read']:,} read = {figures['kept']:,} kept + "
            f"{sum(dropped.values()):,} dropped + {sum(rejected.values()):,} quarantined"
        )
        shown += [f"  {rows:>12,}  dropped: {reason}" for reason, rows in dropped.items()]
        shown += [f"  {rows:>12,}  quarantined: {reason}" for reason, rows in rejected.items()]
        if figures["not_sampled"]:
            shown.append(f"  {figures['not_sampled']:>12,}  not in the sample")
    shown += [
        f"{source}: {number:,} files or folders cannot be read and are left out ({REPORT} lists "
        "them)"
        for source, number in sorted(left_out.items())
    ]
    if cut.refused:
        shown.append(
            f"{len(cut.refused):,} input files are incomplete and were read as far as possible "
            f"({REPORT} lists them): {cut.named()}"
        )
    for split in (TRAIN, VALIDATION):
        sums = sum_shards(made.shards(split=split))
        shown.append(
            f"{split}: {quantity(sums.documents, 'document')}, {sums.tokens:,} tokens, "
            f"shards: {sums.shards}"
        )
    shown += unknown_lines(unknown)
    shown.append(f"dataset in {output}; look at it: {called('shards inspect')} {output} --doc 0")
    shown.append(f"report in {output / PAGE}")
    return shown


def erased_again(merged: Mapping[str, Sequence[MergeRecord]]) -> int:
    """Return the number of dropped texts that were not kept, because they were erased earlier.

    Args:
        merged: The records of the merge in a run with --keep-dropped, by source.
    """
    every = [record for records in merged.values() for record in records]
    kept = sum(table.rows for record in every for table in record.dropped_texts)
    return sum(t.rows for r in every for t in r.tallies if t.verdict == DROPPED) - kept


def segment_tallies(records: Iterable[ProcessRecord]) -> Iterator[tuple[str, Tally]]:
    """Yield the tallies of all segments, each with its source."""
    for record in records:
        for segment in record.segments:
            yield from ((record.source, tally) for tally in segment.tallies)


def _audited(merged: Mapping[str, Sequence[MergeRecord]]) -> Iterator[tuple[str, Tally]]:
    """Yield the tallies of the final audit rows, each with its source."""
    for source, records in merged.items():
        for record in records:
            yield from ((source, tally) for tally in record.tallies)


def _summed(tallies: Iterable[tuple[str, Tally]]) -> Account:
    account: Account = Counter()
    for source, tally in tallies:
        account[source, tally.verdict, tally.reason] += tally.rows
    return account
