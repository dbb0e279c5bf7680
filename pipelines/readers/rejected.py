"""Reads the records again that an earlier run rejected."""

from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.inputs.split import Link, Split, open_split
from pipelines.readers.places import read_places
from pipelines.readers.reading import Reading, format_of, stored_crc32c
from pipelines.readers.record import Damage, Reason, Record
from pipelines.readers.rejects import Rejects

_OF_THE_FILE: Mapping[str, Reason] = {
    "truncated": "truncated",
    "unterminated-array": "unterminated-array",
    "trailing-bytes": "trailing-bytes",
    "bad-archive": "bad-archive",
    "bad-row-group": "bad-row-group",
}
"""Reasons that a place alone does not tell."""

_CUT: Mapping[str, Reason] = {name: _OF_THE_FILE[name] for name in ("truncated", "bad-archive")}


class RejectReader:
    """Iterates over the rejects of one split; iterated to its end, it knows `link` and `crc32c`."""

    def __init__(self, split: Split, reading: Reading, rejects: Rejects) -> None:
        """Make a reader.

        Args:
            split: The range whose rejects to read.
            reading: How the file is read.
            rejects: What was rejected, and what is done about it.
        """
        self.link: Link | None = None
        """The whole range: what was read stands at known places."""
        self.crc32c: int | None = None
        """Checksum of the split's bytes as stored."""
        self.done = 0
        """How much of the split's range stands for what was read so far."""
        self._split = split
        self._reading = reading
        self._rejects = rejects

    def __iter__(self) -> Iterator[Record | Damage]:
        """Yield what stands at the places, in the order of the file.

        Raises:
            UserError: The file cannot be read, or changed since it was cut into splits.
        """
        split = self._split
        open_split(split).close()
        found = self._rejects.of(split)
        reasons = found.reasons()
        mend = self._rejects.bad_utf8 == "replace"
        items = read_places(split.path, reasons, self._reading, mend=mend) if reasons else ()
        for count, item in enumerate(items, 1):
            yield self._item(item, reasons.get((item.offset, item.length), ""))
            self.done = (split.end - split.start) * count // len(reasons)
        self.link = Link(end=split.end, first=split.start, next=split.end)
        known = found.crc32c
        self.crc32c = stored_crc32c(split, self._reading) if known is None else known

    def _item(self, item: Record | Damage, before: str) -> Record | Damage:
        if isinstance(item, Damage):
            return item._replace(reason=_OF_THE_FILE.get(before, item.reason))
        if before in _CUT and format_of(self._split.path, self._reading) == "lines":
            # Half a line of text reads as well as a whole one.
            return Damage(item.offset, item.length, _CUT[before], item.head)
        if self._rejects.nul == "remove":
            return item._replace(value=_without_nul(item.value))
        return item


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [_without_nul(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nul(item) for name, item in value.items()}
    return value
