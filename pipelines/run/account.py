"""The account of a run: what was read, what became of it, and why.

It is computed twice, from the records that the map and dedup left and anew from the final audit
rows; a run whose two accounts differ fails.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipelines.dedup.tasks import DropsRecord
from pipelines.map.mapper import SplitRecord
from pipelines.merge.tasks import MergeRecord
from pipelines.report.write import PAGE
from pipelines.segments.audit import Tally
from pipelines.segments.rows import DROPPED, DUPLICATE, KEPT, NEAR_DUPLICATE, QUARANTINED
from shards.errors import DamageError, UserError
from shards.manifest import TRAIN, VALIDATION, Manifest, sum_shards
from shards.storage.remote import AnyPath

Account = Counter[tuple[str, str, str]]
"""Rows by source, verdict and reason."""


def expected_account(records: Iterable[SplitRecord], dedup: Iterable[DropsRecord]) -> Account:
    """Return the account that the segments' records and dedup's add up to."""
    account: Account = Counter()
    for record in records:
        for segment in record.segments:
            account.update(_rows(record.source, segment.tallies))
    for found in dedup:
        for source, reasons in found.dropped.items():
            for reason, dropped in reasons.items():
                account[source, KEPT, ""] -= dropped
                account[source, DROPPED, reason] += dropped
        for source, renamed in found.renamed.items():
            account[source, DROPPED, NEAR_DUPLICATE] -= renamed
            account[source, DROPPED, DUPLICATE] += renamed
    return +account


def final_account(merged: Mapping[str, Sequence[MergeRecord]]) -> Account:
    """Return the account that the final audit rows add up to, by source."""
    account: Account = Counter()
    for source, records in merged.items():
        for record in records:
            account.update(_rows(source, record.tallies))
    return +account


def check(
    records: Sequence[SplitRecord],
    dedup: Sequence[DropsRecord],
    merged: Mapping[str, Sequence[MergeRecord]],
) -> None:
    """Check that both accounts agree, in rows and bytes, and that what was kept is in shards.

    Raises:
        DamageError: They do not; something was lost or counted twice.
    """
    expected, final = expected_account(records, dedup), final_account(merged)
    if expected != final:
        odd = sorted((expected - final) + (final - expected))[0]
        raise _unbalanced(" ".join(odd), expected[odd], final[odd])
    read = _bytes(tally for record in records for each in record.segments for tally in each.tallies)
    audited = _bytes(t for found in merged.values() for record in found for t in record.tallies)
    if read != audited:
        raise _unbalanced("bytes", read, audited)
    for source, found in merged.items():
        shards = [shard for record in found for shard in (*record.shards, *record.validation)]
        documents = sum(shard.documents for shard in shards)
        if documents != final[source, KEPT, ""]:
            raise _unbalanced(f"{source} documents", final[source, KEPT, ""], documents)


def _unbalanced(what: str, expected: int, found: int) -> DamageError:
    return DamageError(
        f"the account does not balance: {what}: {expected:,} by the segments' records, {found:,} "
        "in the result. Files in .work were changed or lost: delete that folder and run the same "
        "command again"
    )


def accounting(
    account: Account, records: Sequence[SplitRecord], merged: Mapping[str, Sequence[MergeRecord]]
) -> dict[str, Any]:
    """Return the account as the manifest holds it: per source, every figure in rows."""
    sizes: Counter[tuple[str, str]] = Counter()
    for source, found in merged.items():
        for record in found:
            for tally in record.tallies:
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
            "not_sampled": sum(r.unsampled for r in records if r.source == source),
            "bytes": {verdict: sizes[source, verdict] for verdict in (KEPT, DROPPED, QUARANTINED)},
            "groups": _groups(merged.get(source, ())),
        }
        for source in sorted({record.source for record in records})
    }


def _groups(merged: Sequence[MergeRecord]) -> dict[str, dict[str, dict[str, int]]]:
    """Return rows and bytes by group and verdict; nothing for a corpus without groups."""
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
        for (name, given, reason), rows in sorted(account.items())
        if (name, given) == (source, verdict)
    }


def reject_rate(records: Iterable[SplitRecord]) -> tuple[float, Counter[str]]:
    """Return the share of records that could not be read, and their number by reason."""
    tallies = [t for record in records for segment in record.segments for t in segment.tallies]
    reasons: Counter[str] = Counter()
    for tally in tallies:
        if tally.verdict == QUARANTINED:
            reasons[tally.reason] += tally.rows
    return reasons.total() / max(1, sum(tally.rows for tally in tallies)), reasons


def check_rejects(records: Sequence[SplitRecord], *, most: float, work: AnyPath) -> None:
    """Check that the share of unreadable records is bearable and something is left.

    Args:
        records: Of all splits.
        most: The largest share that is.
        work: The folder of intermediate files, which a message names.

    Raises:
        UserError: It is not.
    """
    rate, reasons = reject_rate(records)
    told = ", ".join(f"{rows:,} {reason}" for reason, rows in reasons.most_common())
    if rate > most:
        raise UserError(
            f"{100 * rate:.2f} % of the records cannot be read ({told}), more than "
            f"--max-reject-rate {most:g} allows. Their places and "
            f"first bytes are in {work}/map/*.rejects (Arrow files); mend the input, or "
            "allow more, and run the same command again"
        )
    if not any(segment.documents for record in records for segment in record.segments):
        found = expected_account(records, [])
        told = ", ".join(f"{rows:,} {reason}" for (_, _, reason), rows in sorted(found.items()))
        raise UserError(
            f"no document is left of this input ({told or 'it holds no record'}): look at "
            "--languages, --language-threshold and the options of the corpus"
        )


def lines(account: Mapping[str, Any], made: Manifest, output: AnyPath) -> list[str]:
    """Return what a run says at its end: a line per source and reason, and what was made where."""
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
    for split in (TRAIN, VALIDATION):
        sums = sum_shards(made.shards(split=split))
        shown.append(
            f"{split}: {sums.documents:,} documents, {sums.tokens:,} tokens, shards: {sums.shards}"
        )
    shown.append(f"dataset in {output}; look at it: python -m shards inspect {output} --doc 0")
    shown.append(f"report in {output / PAGE}")
    return shown


def _rows(source: str, tallies: Iterable[Tally]) -> Account:
    account: Account = Counter()
    for tally in tallies:
        account[source, tally.verdict, tally.reason] += tally.rows
    return account


def _bytes(tallies: Iterable[Tally]) -> int:
    return sum(tally.bytes for tally in tallies)
