"""Checks which small files share a pack, and that packs do not affect a dataset's bytes."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.job.build import build
from pipelines.read import packs
from pipelines.read.packs import PACK_BYTES, PACK_FILES, SMALL_BYTES
from pipelines.read.split import FileSplit
from tests.pipelines.runs import MODULE, content, own_text, page, small, write_wudao

SPLIT_BYTES = 128 << 20


def file(number: int, size: int = 700, *, source: str = "s", parts: int = 1) -> list[FileSplit]:
    """Return the splits of a file."""
    edges = [size * part // parts for part in range(parts + 1)]
    return [
        FileSplit(
            source=source,
            path=f"/in/{number:06}.jsonl",
            relative=f"{number:06}.jsonl",
            file_bytes=size,
            start=start,
            end=end,
            mtime_ns=0,
        )
        for start, end in itertools.pairwise(edges)
    ]


def cut(chains: Sequence[Sequence[FileSplit]], split_bytes: int = SPLIT_BYTES) -> list[Any]:
    made = [*packs.packs(chains, split_bytes=split_bytes)]
    assert [split for pack in made for split in pack] == [one for chain in chains for one in chain]
    return made


def test_adding_or_removing_a_file_changes_only_its_pack() -> None:
    files = [file(number) for number in range(10_000)]
    before = {*cut(files)}
    assert 10_000 / PACK_FILES / 2 < len(before) < 10_000 / PACK_FILES * 2
    for number in range(0, 10_000, 1111):
        gone = {*cut([*files[:number], *files[number + 1 :]])}
        assert 1 <= len(before - gone) <= 2, number  # two packs if the file ended a pack
        assert 1 <= len(gone - before) <= 2
        grown = {*cut([*files[:number], file(number, 900), *files[number + 1 :]])}
        assert 1 <= len(before - grown) <= 2


def test_packs_have_one_source_and_large_files_are_separate_items() -> None:
    chains = [file(0), file(1), file(2, SMALL_BYTES), file(3), file(4, 9 << 20, parts=3), file(5)]
    chains += [file(number, source="t") for number in range(3)]
    sizes = [(pack[0].source, len(pack)) for pack in cut(chains)]
    assert sizes == [("s", 2), ("s", 1), ("s", 1), *[("s", 1)] * 3, ("s", 1), ("t", 3)]


@pytest.mark.parametrize(
    ("size", "split_bytes", "least", "most"),
    [
        (700, SPLIT_BYTES, 0, 4 * PACK_FILES),
        (SMALL_BYTES - 1, SPLIT_BYTES, 2, 33),
        (700, 7000, 2, 40),
    ],
)
def test_packs_are_bounded_in_files_and_bytes(
    size: int, split_bytes: int, least: int, most: int
) -> None:
    made = cut([file(number, size) for number in range(3000)], split_bytes)
    assert max(map(len, made)) <= most
    assert 3000 / len(made) > least
    assert max(sum(one.file_bytes for one in pack) for pack in made) <= 4 * PACK_BYTES + size


@pytest.mark.slow
def test_packs_do_not_affect_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files have invalid records, and texts that repeat within a file and between files."""
    for number in range(24):
        copied = [(7 * number + 3 * row) % 12 for row in range(4)]
        pages = [page(each, own_text(each)) for each in (*copied, 1000 + number)]
        broken: list[Any] = [{"title": "no content"}, page(1), "no object"][: number % 4]
        path = tmp_path / "in" / f"{number % 7}" / f"part-{number:03}.json"
        write_wudao(path, [*pages, *broken, pages[0]])
    options = {
        "split_bytes": 1 << 20,
        "shards": 0,
        "shard_tokens": 10_000,
        "keep_dropped": True,
        "dedup": "minhash",
        "validation": 0.05,
        "max_reject_rate": 1.0,
    }

    def made(name: str) -> dict[str, str]:
        output = tmp_path / name
        build(MODULE, small(output, tmp_path / "in", **options))
        tasks = json.loads((output / "report.json").read_bytes())["stages"]["map"]["all"]
        assert tasks == 24 if name == "alone" else tasks < 4
        return content(output)

    together = made("together")
    monkeypatch.setattr(packs, "SMALL_BYTES", 0)
    assert made("alone") == together
