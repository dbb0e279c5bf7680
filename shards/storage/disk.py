"""Explains failed file operations on a disk and says how to fix them."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shards.errors import UserError


@contextmanager
def disk_errors_explained(path: Path) -> Iterator[None]:
    """Turn any failed operation on a file into a message that the user can act on.

    Raises:
        UserError: An operation failed.
    """
    try:
        yield
    except OSError as error:
        raise disk_error(error, path) from error


def disk_error(error: OSError, path: Path) -> UserError:
    """Return an error that names the failed operation on `path` and says how to fix it."""
    number = _number(error)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return UserError(
            f"no space left on the disk that holds {path} ({_free_space(path)}): make room and run "
            "the same command again; finished work is kept."
        )
    advice = _ADVICE.get(number, "check the disk and run the same command again")
    return UserError(f"{path}: {os.strerror(number)}: {advice}.")


def _number(error: OSError) -> int:
    """Return the number of an error; some errors of pyarrow have it only in their text."""
    if error.errno:
        return error.errno
    ends = (number for number in errno.errorcode if str(error).endswith(os.strerror(number)))
    return next(ends, errno.EIO)


_ADVICE = {
    errno.EACCES: "choose another place, or change the permissions",
    errno.EPERM: "choose another place, or change the permissions",
    errno.EROFS: "choose a place on another disk",
    errno.ENOTDIR: "a part of this path is a file, not a folder; choose another place",
    errno.EEXIST: "this is a file, not a folder; choose another place",
    errno.EISDIR: "this is a folder, not a file; move it away or choose another place",
    errno.ENAMETOOLONG: "the name is too long for this disk; choose a shorter one",
    errno.EFBIG: "the file is too large for this disk or for your limits (ulimit -f)",
    errno.ENOENT: "check the name",
    errno.ENOLCK: "this disk does not support locks; choose a place on another",
    errno.EOPNOTSUPP: "this disk does not support the operation; choose a place on another",
    errno.ENOMEM: "use a machine with more memory, or raise the limit (ulimit -v)",
    errno.EMFILE: "raise the limit (ulimit -n)",
}


def _free_space(path: Path) -> str:
    for folder in path.absolute().parents:
        with suppress(OSError):
            return f"{shutil.disk_usage(folder).free / 1e6:,.0f} MB free"
    return "free space unknown"
