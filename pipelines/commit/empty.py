"""Warnings about columns that options need but that are empty in some documents.

The first records of a source must have values in these columns (pipelines/process/field_check.py),
but later records, and records of other files, may lack them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from pipelines.corpus.sources import Corpus
from pipelines.process.processor import ProcessRecord


def missing_value_warnings(
    records: Iterable[ProcessRecord], corpora: Mapping[str, Corpus]
) -> Iterator[str]:
    """Yield a line for each source and each option whose column is empty in some documents.

    Args:
        records: The records of all items of `map`.
        corpora: The corpus of each source.
    """
    counts: dict[str, Counter[str]] = {}
    for record in records:
        for segment in record.segments:
            counts.setdefault(record.source, Counter()).update(segment.empty)
    for source, empty in sorted(counts.items()):
        for flag, column, effect in _needed_columns(corpora[source]):
            if empty[column]:
                yield f"{source}: documents without {column}: {empty[column]:,} ({flag} {effect})"


def _needed_columns(corpus: Corpus) -> Iterator[tuple[str, str, str]]:
    """Yield each flag that needs a column, the column, and the effect of a missing value."""
    if corpus.options.url_blocklist:
        yield "--url-blocklist", "url", "does not look at them"
    for name, words in corpus.spec.named_fields(corpus.options).items():
        flag, given = words.split(" ", 1)
        column = "id" if flag == "--id-field" else given.partition("=")[0] or name
        yield words, column, "leaves it empty"
