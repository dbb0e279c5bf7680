import errno
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shards.errors import DamageError, UserError
from shards.storage.arrow import check_string_offsets, check_values, read_table, reraise_as_damage

PATH = Path("some.arrow")

TABLE = pa.table(
    {
        "n": pa.array([1, 2, 3], pa.uint64()),
        "text": pa.array(["a", "天气", ""], pa.large_string()),
        "raw": pa.array([b"x", None, b"yz"], pa.binary()),
        "word": pa.array(["b", "c", "b"]).dictionary_encode(),
        "fixed": pa.array([b"12", b"34", b"56"], pa.binary(2)),
        "flag": pa.array([True, None, False]),
    },
    schema=pa.schema(
        [
            pa.field("n", pa.uint64(), nullable=False),
            ("text", pa.large_string()),
            ("raw", pa.binary()),
            ("word", pa.dictionary(pa.int32(), pa.string())),
            ("fixed", pa.binary(2)),
            ("flag", pa.bool_()),
        ]
    ),
)


def file_of(table: pa.Table) -> np.ndarray:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def test_any_flipped_bit_is_told_or_harmless() -> None:
    """All values that can be read after the flip are inside the file and can be shown."""
    content, told = file_of(TABLE), list[str]()
    rng = np.random.default_rng(1)
    for place in range(content.size):
        changed = content.copy()
        changed[place] ^= 1 << rng.integers(8)
        try:
            check_values(read_table(changed, PATH), PATH).to_pylist()
        except DamageError as error:
            told.append(str(error))
    assert len(told) > 100
    paragraph = re.compile(r"some\.arrow is not an Arrow file, or is damaged \(.*\): restore .*")
    assert [text for text in told if not paragraph.fullmatch(text)] == []


def test_bytes_that_are_no_text_lie_in_their_file() -> None:
    content = np.frombuffer(file_of(TABLE).tobytes().replace("天".encode(), b"\xff" * 3), np.uint8)
    table = check_string_offsets(read_table(content, PATH), PATH)
    with pytest.raises(DamageError, match=r"some\.arrow is not an Arrow file, or is damaged"):
        check_values(table, PATH)


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (ValueError("odd\nlines"), DamageError, r"some\.arrow is not a list, .*odd lines"),
        (KeyError("odd lines"), DamageError, r"some\.arrow is not a list, .*odd lines"),
        # Refusals of the disk and a lack of memory are not damage.
        (OSError(errno.EMFILE, "x"), UserError, os.strerror(errno.EMFILE)),
        (OSError(errno.ESTALE, "x"), UserError, os.strerror(errno.ESTALE)),
        (MemoryError("all"), MemoryError, "all"),
        (pa.ArrowMemoryError("malloc"), pa.ArrowMemoryError, "malloc"),
        (OSError(errno.ENOMEM, "none"), OSError, "none"),
    ],
    ids=repr,
)
def test_what_goes_wrong_names_the_file(error: Exception, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says) as raised, reraise_as_damage(PATH, kind="a list"):
        raise error
    assert type(raised.value) is kind
