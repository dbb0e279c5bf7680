"""The unknown tokens of a run, which represent text that the tokenizer cannot spell.

The tokens are counted in all documents that passed the rules, before duplicates are dropped, so
that the numbers do not depend on how the input was split.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from pipelines.process.processor import ProcessRecord
from pipelines.report.write import PAGE

Unknown = Mapping[str, Mapping[str, Mapping[str, int]]]
"""The numbers of all `tokens` and of `unknown` tokens, by source and language."""

_MAX_SHARE = 0.01
"""The share of unknown tokens above which a run warns."""

_MAX_WARNINGS = 5


def unknown_tokens(records: Iterable[ProcessRecord]) -> Unknown:
    """Return the counts of a run's tokens; empty if the tokenizer can spell everything."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        for segment in record.segments:
            for language, counts in segment.unknown.items():
                key = record.source, language
                sums.setdefault(key, Counter()).update(tokens=counts.tokens, unknown=counts.unknown)
    shown: dict[str, dict[str, dict[str, int]]] = {}
    for source, language in sorted(sums):
        shown.setdefault(source, {})[language] = dict(sums[source, language])
    return shown


def unknown_lines(unknown: Unknown) -> Iterator[str]:
    """Yield the log line with the number of unknown tokens, if there are any."""
    every = [counts for languages in unknown.values() for counts in languages.values()]
    found, tokens = (sum(each[name] for each in every) for name in ("unknown", "tokens"))
    if found:
        yield f"unknown: {_share(found, tokens)}"


def unknown_warnings(unknown: Unknown) -> Iterator[str]:
    """Yield warnings for sources and languages with many unknown tokens, largest number first."""
    many = sorted(
        (-counts["unknown"], source, language, counts["tokens"])
        for source, languages in unknown.items()
        for language, counts in languages.items()
        if counts["unknown"] > _MAX_SHARE * counts["tokens"]
    )
    for minus, source, language, tokens in many[:_MAX_WARNINGS]:
        of = f"{source}, language {language}" if language else source
        yield (
            f"{of}: {_share(-minus, tokens)} are unknown: the tokenizer cannot spell this text. "
            "Choose another --tokenizer, or leave the text out (--languages, --input)"
        )
    if more := len(many[_MAX_WARNINGS:]):
        yield f"{PAGE} lists {more:,} more sources and languages with many unknown tokens"


def _share(unknown: int, tokens: int) -> str:
    return f"{unknown:,} of {tokens:,} tokens ({100 * unknown / max(1, tokens):.2f} %)"
