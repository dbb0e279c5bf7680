"""A second name for the bytes of a file, where the disk can give one instead of a copy."""

import errno
import fcntl
import os
import uuid
from contextlib import suppress
from pathlib import Path

from shards.storage.disk import disk_errors_explained, explain
from shards.storage.files import TEMPORARY, make_folder, sync_folder

HARD_LINK = "hard link"
REFLINK = "reflink"
"""A file of its own that shares its blocks until one of the two is written (Btrfs, XFS)."""

_FICLONE = 0x40049409
"""The request of linux/fs.h, which Python has no name for."""


def link(source: Path, target: Path) -> str | None:
    """Give the bytes of a file a second name, and return which kind it is; None if it cannot be.

    The name appears at once, and replaces what has it. A link as the source stands for its file.

    Raises:
        UserError: The disk is full, the folder is not writable, or the like.
    """
    temporary = target.with_name(f"{TEMPORARY}{uuid.uuid4().hex}-{target.name}")
    source = source.resolve()
    with disk_errors_explained(target):
        make_folder(target.parent)
    for kind, give in ((REFLINK, _reflink), (HARD_LINK, _hard_link)):
        try:
            give(source, temporary)
            temporary.replace(target)
            sync_folder(target.parent)
            return kind
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise explain(error, target) from error
        finally:
            with suppress(OSError):  # two names of one file: replacing did nothing
                temporary.unlink(missing_ok=True)
    return None  # another disk, too many links, a file of someone else: it is copied


def _reflink(source: Path, target: Path) -> None:
    with source.open("rb") as read, target.open("xb") as written:
        fcntl.ioctl(written.fileno(), _FICLONE, read.fileno())
        os.fsync(written.fileno())


def _hard_link(source: Path, target: Path) -> None:
    target.hardlink_to(source)
