"""Mounts small and read-only file systems in this process's own mount namespace."""

import ctypes
import os
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEWNS, _NEWUSER = 0x00020000, 0x10000000
_RDONLY, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 32, 4096, 16384, 1 << 18


class MountError(OSError):
    """The system does not allow mounts."""


def enter_namespace() -> None:
    """Move this process, which must have one thread, to its own mount namespace.

    Raises:
        MountError: The system does not allow this.
    """
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_NEWNS | (_NEWUSER if user else 0)):
        raise MountError(ctypes.get_errno(), "unshare")
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _mount("none", "/", None, _REC | _PRIVATE, None)


def mount_small(folder: Path, *, megabytes: int) -> None:
    """Mount a file system of a few megabytes on a folder."""
    _mount("tmpfs", str(folder), "tmpfs", 0, f"size={megabytes}m")


def make_read_only(folder: Path) -> None:
    """Mount a folder on itself as read-only."""
    _mount(str(folder), str(folder), None, _BIND, None)
    _mount("none", str(folder), None, _BIND | _REMOUNT | _RDONLY, None)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None) -> None:
    def encoded(text: str | None) -> bytes | None:
        return None if text is None else os.fsencode(text)

    if _LIBC.mount(
        encoded(source), encoded(target), encoded(kind), ctypes.c_ulong(flags), encoded(data)
    ):
        raise MountError(ctypes.get_errno(), f"mount {target}")
