"""Counts the tokens that stand for text a tokenizer cannot spell, by language."""

from dataclasses import dataclass

import pyarrow as pa

UNKNOWN = "unknown_tokens"
"""The column with the number of these tokens of a document; null if the tokenizer has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTokens:
    """How many tokens of some documents are unknown."""

    tokens: int
    """All tokens."""
    unknown: int
    """The tokens that stand for text the tokenizer cannot spell."""


def count_unknown(documents: pa.Table) -> dict[str, UnknownTokens]:
    """Return the counts of documents by language; nothing if the tokenizer can spell everything.

    Args:
        documents: With their language, the number of their tokens, and UNKNOWN.
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
