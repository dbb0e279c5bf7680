"""Which texts are not shown, because a document was removed.

The rule is that of `compact --erase` (erasure.py), of what goes from a dataset with its removed
documents: their rows, records from the same place of the input, texts equal to theirs, and texts of
near-duplicates, because nobody knows of which documents they are.
"""

import pyarrow as pa

from shards.erasure import BARE, Erasure
from shards.reader import Dataset
from shards.view.alike import Alike
from shards.view.audit import REJECTS, Record

_NEAR_DUPLICATE = "near-duplicate"
_COLUMNS = pa.schema(
    [
        ("order", pa.uint64()),
        ("path", pa.large_string()),
        ("position", pa.int64()),
    ]
)


class Hidden:
    """Texts of a dataset that are not to be shown."""

    def __init__(self, dataset: Dataset, alike: Alike) -> None:
        self._erasure = Erasure(dataset)
        self._alike = alike
        self._any = bool(self._erasure.num_documents)

    def reason(self, record: Record) -> str:
        """Return why the text of a record is not shown; "" if it is.

        Args:
            record: A row of any table, with its `text` if it has one.
        """
        if self._any and self._is_removed(record):
            return "a document made from this record was removed"
        if self._any and record.values.get("reason") == _NEAR_DUPLICATE:
            return "documents were removed, and this may be a version of one"
        text = record.values.get("text")
        if text and self._has_removed_text(text):
            return "a document with this text was removed"
        return ""

    def _is_removed(self, record: Record) -> bool:
        rows = pa.table([[record.values.get(name)] for name in _COLUMNS.names], schema=_COLUMNS)
        # By order and by place; rejects have no text to look at.
        spared = self._erasure.spared(
            rows,
            folder=REJECTS,
            generation=record.table.generation.name,
            source=record.table.entry.source,
        )
        return not spared.all()

    def _has_removed_text(self, text: str) -> bool:
        owner = self._alike.owner(text)
        if owner is None:
            return False
        return owner.order == BARE or owner.order in self._erasure.orders(owner.generation)
