"""Writes files that run code if they are read as pickles: the code makes a folder."""

import json
import os
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from shards.storage.files import crc32c, file_size


class Payload:
    """An object that makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


def _hidden(path: Path, payload: Payload) -> None:
    """Add the payload to the content of a file, which stays usable."""
    torch.save({**torch.load(path, weights_only=False), "args": payload}, path)


def _hidden_in_the_old_format(path: Path, payload: Payload) -> None:
    content = {**torch.load(path, weights_only=False), "args": payload}
    torch.save(content, path, _use_new_zipfile_serialization=False)


def _plain(path: Path, payload: Payload) -> None:
    path.write_bytes(pickle.dumps(payload, protocol=2))


POISONS: Mapping[str, Callable[[Path, Payload], None]] = {
    "hidden": _hidden,
    "old format": _hidden_in_the_old_format,
    "plain": _plain,
}


def poison(path: Path, trace: Path, way: str) -> None:
    """Turn a file into one that makes the folder `trace`, and update the file's entry in lists."""
    POISONS[way](path, Payload(trace))
    mend_lists(path)


def mend_lists(path: Path) -> None:
    """Write the present size and checksum of a changed file to the lists of its checkpoint."""
    for list_path in path.parent.glob("whole-*.json"):
        if list_path == path:
            continue
        content = json.loads(list_path.read_text())
        if path.name in content["files"]:
            content["files"][path.name] = {"bytes": file_size(path), "crc32c": crc32c(path)}
            list_path.write_text(json.dumps(content))
