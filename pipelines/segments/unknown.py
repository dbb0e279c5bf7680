"""Counts, by language, unknown tokens: those for text that the tokenizer cannot spell."""

from dataclasses import dataclass

import pyarrow as pa

UNKNOWN = "unknown_tokens"
"""The column with the number of unknown tokens of a document; null if the tokenizer lacks them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTokens:
    """The numbers of all tokens and of unknown tokens of some documents."""

    tokens: int
    """The number of all tokens."""
    unknown: int
    """The number of tokens that represent text the tokenizer cannot spell."""


def count_unknown(documents: pa.Table) -> dict[str, UnknownTokens]:
    """Return the counts of documents by language; empty if the tokenizer can spell everything.

    Args:
        documents: The documents, with the columns `language`, `tokens` and UNKNOWN.
    """
    known = documents.filter(documents[UNKNOWN].is_valid())
    plain = pa.table(
        {
            "language": known["language"].cast(pa.string()).fill_null(""),
            "tokens": known["tokens"].cast(pa.int64()),
            "unknown": known[UNKNOWN].cast(pa.int64()),
        }
    )
    sums = plain.group_by("language").aggregate([("tokens", "sum"), ("unknown", "sum")])
    return {
        row["language"]: UnknownTokens(tokens=row["tokens_sum"], unknown=row["unknown_sum"])
        for row in sums.sort_by("language").to_pylist()
    }
