import errno
import os
import re
from pathlib import Path

import pytest

from shards.errors import UserError
from shards.storage.disk import disk_errors_explained, explain


def test_a_failed_operation_names_the_path_and_what_to_do(tmp_path: Path) -> None:
    missing = tmp_path / "x"
    message = re.escape(f"{missing}: No such file or directory: there is no such file; check")
    with pytest.raises(UserError, match=message), disk_errors_explained(missing):
        missing.read_bytes()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.EACCES, r"you lack permission here; choose another"),
        (errno.EPERM, r"you lack permission here"),
        (errno.EROFS, r"read-only; choose a place on another"),
        (errno.ENOTDIR, r"a file where a folder is needed"),
        (errno.ENAMETOOLONG, r"too long .*shorter"),
        (errno.EFBIG, r"ulimit -f"),
        (errno.EIO, r"check the disk"),
    ],
)
def test_advice_depends_on_the_error(code: int, expected: str) -> None:
    message = str(explain(OSError(code, "?"), Path("/data/out")))
    assert message.startswith(f"/data/out: {os.strerror(code)}: ")
    assert message.endswith(".")
    assert re.search(expected, message)
