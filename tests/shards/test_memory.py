"""Which errors mean a lack of memory."""

import errno
from pathlib import Path

import pyarrow as pa
import pytest

from shards.memory import is_out_of_memory
from shards.storage.disk import disk_error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (pa.ArrowMemoryError("malloc of size 64 failed"), True),
        (OSError(errno.ENOMEM, "no"), True),
        (OSError("Memory mapping file failed: Cannot allocate memory"), True),
        (ImportError("x.so: failed to map segment from shared object"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError(errno.EIO, "no"), False),
        (ImportError("No module named x"), False),
        (ValueError("Cannot allocate memory"), False),
    ],
    ids=repr,
)
def test_errors_for_lack_of_memory(error: Exception, expected: bool) -> None:
    assert is_out_of_memory(error) is expected


def test_a_file_that_cannot_be_mapped() -> None:
    error = OSError("Memory mapping file failed: Cannot allocate memory")
    told = "/x: Cannot allocate memory: use a machine with more memory"
    assert str(disk_error(error, Path("/x"))).startswith(told)
