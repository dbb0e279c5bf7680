"""The account of a run: the counts from the map stage equal those of the dataset."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.job.build import build
from shards.errors import DamageError
from shards.storage.files import canonical_json, crc32c_of, write_json
from tests.pipelines.runs import MODULE, page, small, write_wudao


def fewer_dropped(record: dict[str, Any]) -> None:
    (tally,) = (tally for tally in record["tallies"] if tally["reason"] == "duplicate")
    tally["rows"] -= 1


def fewer_bytes(record: dict[str, Any]) -> None:
    record["tallies"][0]["bytes"] -= 1


def fewer_documents(record: dict[str, Any]) -> None:
    record["shards"][0]["documents"] -= 1


def fewer_found(record: dict[str, Any]) -> None:
    record["dropped"]["wudao"]["duplicate"] -= 1


def test_unknown_tokens_are_those_of_the_shards(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n的\n老\n第\n")
    write_wudao(tmp_path / "in" / "part-1.json", map(page, range(20)))
    output = tmp_path / "out"
    options = small(
        output, tmp_path / "in", tokenizer=f"hf:{tmp_path / 'vocab.txt'}", keep_segments=True
    )
    for _ in range(2):  # the second run finds the first run's records
        manifest = build(MODULE, options)
        report = json.loads((output / "report.json").read_text())
        (shard,) = manifest.shards()
        tokens = np.fromfile(output / f"{shard.path}.bin", "<u2")
        counts = {"tokens": len(tokens), "unknown": int((tokens == 1).sum())}
        assert report["unknown_tokens"] == {"wudao": {"zh": counts}}
        assert manifest.tokenizer.special["unk"] == 1
        (output / "manifest.json").unlink()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an input of two files, and the dataset, with segments, that a run built."""
    folder = tmp_path_factory.mktemp("made")
    for part in (1, 2):
        numbers = range(0, 5 + 15 * (part == 1))
        write_wudao(folder / "in" / f"part-{part}.json", map(page, numbers))
    build(MODULE, small(folder / "out", folder / "in", keep_segments=True))
    return folder


@pytest.mark.parametrize(
    ("stage", "change", "message"),
    [
        ("merge", fewer_dropped, "wudao dropped duplicate: 5 in the segments, 4 in"),
        ("drops", fewer_found, "wudao dropped duplicate: 4 in the segments, 5 in"),
        ("merge", fewer_bytes, "bytes: 1[0-9],"),
        ("merge", fewer_documents, "wudao documents: 20 in the segments, 19 in"),
    ],
)
def test_a_run_that_does_not_balance_fails(
    made: Path, tmp_path: Path, stage: str, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    output = Path(shutil.copytree(made / "out", tmp_path / "out"))
    (path,) = (output / ".work" / stage).glob("*.json")
    record = json.loads(path.read_text())
    del record["seal"]
    change(record)
    write_json(path, {**record, "seal": crc32c_of(canonical_json(record))})
    (output / "manifest.json").unlink()
    with pytest.raises(
        DamageError, match=f"account does not balance: {message}.* delete that folder"
    ):
        build(MODULE, small(output, made / "in", keep_segments=True))
