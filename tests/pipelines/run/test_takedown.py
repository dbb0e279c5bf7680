"""Of a text that was taken down and erased nothing is left, whatever a later crawl brings."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.run.append import append
from pipelines.run.build import build
from shards.__main__ import main
from shards.console import run_module
from shards.manifest import TRAIN, VALIDATION, Manifest, read_manifest
from shards.reader import Dataset
from shards.verify import verify
from tests.pipelines.runs import MODULE, own_text, page, small, write_wudao

pytestmark = pytest.mark.slow

MARKER, GROUP = "ZQXJ", "某人的信"


def grown(output: Path, folder: Path, **changes: Any) -> Manifest:
    return append(MODULE, small(output, folder, append=True, **changes))


def asked_page(number: int = 7) -> dict[str, Any]:
    """The page that is taken down, under an id of its own."""
    return {**page(7, f"{MARKER} {own_text(7, 600)} {MARKER}"), "uniqueKey": f"{number:032x}"}


def changed(number: int, old: str, new: str) -> dict[str, Any]:
    """That page with one change to its text."""
    return {**asked_page(number), "content": asked_page()["content"].replace(old, new, 1)}


def kept_ids(output: Path) -> list[str]:
    dataset = Dataset.open(output)
    shards = [
        shard for split in (TRAIN, VALIDATION) for shard in dataset.documents(split=split).shards()
    ]
    return sorted(
        key
        for shard in shards
        for row, key in enumerate(shard.documents["id"].to_pylist())
        if row not in shard.removed
    )


def ids(*records: dict[str, Any]) -> list[str]:
    return sorted(record["uniqueKey"] for record in records)


def texts_in(path: Path) -> bytes:
    """Return what a file says, uncompressed."""
    content = path.read_bytes()
    if path.suffix == ".parquet":
        content += repr(pq.read_table(path).to_pylist()).encode()
        content += repr(pq.read_metadata(path).to_dict()).encode()
    return content


def files_with(directory: Path, sought: bytes) -> list[str]:
    """Return the files of a folder that have these bytes in them, by name without number."""
    found = [path for path in directory.rglob("*") if path.is_file() and sought in texts_in(path)]
    return sorted({path.relative_to(directory).as_posix() for path in found})


PAGES = [page(number, own_text(number, 600)) for number in range(6)]


def marks_of(output: Path, keys: list[str]) -> tuple[str, bytes, bytes]:
    """Return id, some tokens and order of the one document that has one of some ids."""
    ((shard, row, key),) = [
        (shard, row, key)
        for shard in Dataset.open(output).documents().shards()
        for row, key in enumerate(shard.documents["id"].to_pylist())
        if key in keys
    ]
    order = shard.documents["order"][row].as_py()
    return key, shard[row][10:40].tobytes(), order.to_bytes(8, "little")


def test_erased_bytes_are_in_no_file(tmp_path: Path) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    spaced, near = changed(11, f" {MARKER}", f" \n {MARKER}"), changed(12, "急不得", "急也没用")
    copies = [asked_page(8), {**asked_page(9), "dataType": "别的"}]
    write_wudao(folder / "part-1.json", [*PAGES[:3], asked_page(), *copies])
    options = {"dedup": "minhash", "keep_dropped": True, "keep_segments": True}
    build(MODULE, small(output, folder, **options))
    write_wudao(folder / "part-2.json", [*PAGES[3:5], asked_page(10), spaced, near])
    grown(output, folder, **options)
    first, second = (generation.name for generation in read_manifest(output).generations)
    key, tokens, order = marks_of(output, ids(asked_page(7), *copies))
    assert main(["remove", str(output), "--id", key, "--reason", "letter"]) == 0
    # What is sought afterwards is found now.
    texts = {name.rpartition("/")[0] for name in files_with(output, MARKER.encode())}
    assert texts == {"", ".work/map", f"{first}/dropped", f"{second}/dropped"}
    assert {Path(name).suffix for name in files_with(output, tokens)} == {".bin", ".tokens"}
    places = {Path(name).parent.name for name in files_with(output, order)}
    assert places >= {"wudao", "signatures", "map"}
    write_wudao(folder / "part-2b.json", [asked_page(14)])
    grown(output, folder, **options)
    assert kept_ids(output) == ids(*PAGES[:5])

    assert main(["compact", str(output), "--erase"]) == 0
    assert [files_with(output, sought) for sought in (MARKER.encode(), tokens, order)] == [[]] * 3
    assert run_module("pipelines.report", [str(output)]) == 0
    assert files_with(output, MARKER.encode()) == []
    write_wudao(folder / "part-3.json", [PAGES[5], asked_page(13)])
    _, later = grown(output, folder, **options).generations
    assert f"{later.name}/dropped/wudao-00000.parquet" in files_with(output, MARKER.encode())
    assert main(["compact", str(output), "--erase"]) == 0
    assert files_with(output, MARKER.encode()) == []
    assert kept_ids(output) == ids(*PAGES)
    assert list(verify(Dataset.open(output))) == []
