from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.inputs.files import match_inputs
from pipelines.inputs.split import Split, split_file
from pipelines.readers.reading import Reading, stored_crc32c
from pipelines.readers.record import Damage, Record
from pipelines.readers.rejects import PLACES, WHOLE, RejectReader, Rejects
from shards import UserError

READING = Reading(format="jsonl", text_fields=("text",))
DEEP = b"[" * 1001 + b"]" * 1001
LINES = (
    b'{"text": "a\\u0000b", "more": {"x": ["\\u0000"], "y": %s}}' % DEEP,
    b'{"text": "caf\xe9"}',
    b"not json",
)


def places(reasons: tuple[str, ...]) -> pa.Table:
    starts = [0, len(LINES[0]) + 1, len(LINES[0]) + len(LINES[1]) + 2]
    columns = [starts, [len(line) for line in LINES], [WHOLE] * 3, reasons]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, PLACES, strict=True)], PLACES)


def opened(
    tmp_path: Path, reasons: tuple[str, str, str], crc32c: int | None = None, **remedies: str
) -> tuple[RejectReader, Split]:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(LINES))
    (file,) = match_inputs((str(path),), pattern="*", default_name="s")
    (split,) = split_file(file, file.bytes)
    rejects = Rejects(folder=tmp_path / "places", dataset="d", reasons=(), **remedies)  # type: ignore[arg-type]  # strings alone are given
    rejects.write(places(reasons), [split], crc32c=None if crc32c is None else [crc32c])
    return RejectReader(split, READING, rejects), split


def test_remedies_are_applied_and_the_checksum_is_the_file_s(tmp_path: Path) -> None:
    reader, split = opened(
        tmp_path, ("nul", "bad-utf8", "bad-json"), bad_utf8="replace", nul="remove"
    )
    nul, utf8, bad = reader
    assert isinstance(nul, Record)
    assert nul.value["text"] == "ab"
    assert nul.value["more"]["x"] == [""]
    assert isinstance(utf8, Record)
    assert (utf8.value, utf8.length, utf8.raw) == ({"text": "caf\ufffd"}, len(LINES[1]), LINES[1])
    assert isinstance(bad, Damage)
    assert bad.reason == "bad-json"
    assert reader.link is not None
    assert (reader.link.first, reader.link.next) == (split.start, split.end)
    assert reader.done == split.end
    assert reader.crc32c == stored_crc32c(split, READING)


@pytest.mark.parametrize(
    ("before", "now"),
    [("bad-archive", "bad-archive"), ("truncated", "truncated"), ("too-long", "bad-json")],
)
def test_a_reason_that_the_place_does_not_tell_stays(before: str, now: str, tmp_path: Path) -> None:
    reader, _ = opened(tmp_path, ("nul", "bad-utf8", before), crc32c=7)
    nul, utf8, bad = reader
    assert isinstance(nul, Record)
    assert isinstance(utf8, Damage)
    assert isinstance(bad, Damage)
    assert (utf8.reason, bad.reason) == ("bad-utf8", now)
    assert reader.crc32c == 7, "as it is known"


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    reader, split = opened(tmp_path, ("nul", "bad-utf8", "bad-json"))
    Path(split.path).write_bytes(b"{}")
    with pytest.raises(UserError, match="is being changed"):
        list(reader)
