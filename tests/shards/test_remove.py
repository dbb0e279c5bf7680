import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from shards.__main__ import main
from shards.manifest import TRAIN, VALIDATION
from shards.order.sampler import Sampler
from shards.order.streams import streams_of
from shards.reader import Dataset
from shards.verify import verify
from shards.windows import WindowVocabulary, causal_windows, glm_windows, num_windows
from tests.shards.library import build
from tests.shards.windows import read_window

WANTED = ("news-2-5", "later-0-7", "news-v-1", "books-1-3", "books-1-4")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    build(tmp_path / "library")
    return tmp_path / "library"


def take_down(directory: Path, *names: str) -> None:
    flags = [word for name in names for word in ("--id", name)]
    assert main(["remove", str(directory), *flags, "--reason", "a letter"]) == 0


def removed(directory: Path | str) -> dict[str, list[int]]:
    return {path: rows.tolist() for path, rows in Dataset.open(directory).removed.items()}


@pytest.mark.parametrize("spec", [causal_windows(64), glm_windows(64)], ids=["causal", "glm"])
def test_windows_stay_and_only_lose_what_was_removed(library: Path, spec: object) -> None:
    before = Dataset.open(library)
    take_down(library, *WANTED)
    after = Dataset.open(library)
    vocabulary = WindowVocabulary.of(before)
    changed = same = 0
    for split in (TRAIN, VALIDATION):
        for entry in before.manifest.shards(split=split):
            old, new = before.shard(entry), after.shard(entry)
            assert new.entry == old.entry
            gone = set(new.removed.tolist())
            for window in range(num_windows(entry.tokens, spec.stride)):
                settings = {"spec": spec, "vocabulary": vocabulary, "phase": 17}
                was, now = (read_window(shard, window, **settings) for shard in (old, new))
                # The last target of a causal window is of the next document.
                if gone.isdisjoint(was.piece_rows.tolist()):
                    assert np.array_equal(was.tokens, now.tokens)
                    assert was.loss_mask[:-1].tolist() == now.loss_mask[:-1].tolist()
                    same += 1
                else:
                    assert gone.isdisjoint(now.piece_rows.tolist())
                    assert len(now.tokens) < len(was.tokens)
                    changed += 1
    assert changed > 10
    assert same > 100
    samplers = [
        Sampler(streams_of(dataset), seed=1, num_scatters=1, window=spec)
        for dataset in (before, after)
    ]
    assert samplers[0].identity == samplers[1].identity


KILLED = """
import os, sys
from pathlib import Path
from shards.storage import files

class Dies(files.Handle):
    def write(self, data):
        if self._path.name == sys.argv[1] or self._path.parent.name == sys.argv[1]:
            os._exit(9)
        return super().write(data)

files.Handle = Dies
from shards.__main__ import main
main(["remove", sys.argv[2], "--id", "news-2-5", "--reason", "r"])
"""


@pytest.mark.parametrize("file", ["removals", "manifest.json"])
def test_a_process_that_dies_while_it_writes(library: Path, file: str) -> None:
    manifest = (library / "manifest.json").read_bytes()
    command = [sys.executable, "-c", KILLED, file, str(library)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 9
    assert (library / "manifest.json").read_bytes() == manifest
    assert removed(library) == {}
    take_down(library, "news-2-5")
    assert list(verify(Dataset.open(library))) == []


def test_nothing_is_locked_where_no_dataset_is(tmp_path: Path) -> None:
    assert main(["remove", str(tmp_path), "--id", "a", "--reason", "a letter"]) == 2
    assert not list(tmp_path.iterdir())
