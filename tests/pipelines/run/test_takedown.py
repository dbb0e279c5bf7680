"""A text that was taken down stays away, whatever a later crawl brings."""

from pathlib import Path
from typing import Any

import pytest

from pipelines.run.append import append
from pipelines.run.build import build
from shards.__main__ import main
from shards.manifest import Manifest, read_manifest
from shards.reader import Dataset
from tests.pipelines.runs import MODULE, page, small, write_wudao

LONG = "".join(f"第{i}句说的是一只篮子怎样从竹林走到集市，又怎样被人带回家里。" for i in range(40))
NEAR = LONG.replace("第7句", "第七句")


def grown(output: Path, folder: Path, **changes: Any) -> Manifest:
    return append(MODULE, small(output, folder, append=True, **changes))


@pytest.mark.parametrize("dedup", ["exact", "minhash"])
def test_a_later_crawl_cannot_bring_a_text_back(tmp_path: Path, dedup: str) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    asked = page(7, LONG)
    write_wudao(folder / "part-1.json", [page(1), asked, page(2)])
    build(MODULE, small(output, folder, dedup=dedup))
    assert main(["remove", str(output), "--id", asked["uniqueKey"], "--reason", "letter"]) == 0
    copy = {**asked, "uniqueKey": f"{1007:032x}"}
    near = {**copy, "uniqueKey": f"{2007:032x}", "content": copy["content"].replace(LONG, NEAR)}
    assert near["content"] != copy["content"]
    write_wudao(folder / "part-2.json", [copy, near, page(3)])
    manifest = grown(output, folder, dedup=dedup)
    assert len(manifest.removals) == 1
    new = manifest.generations[1]
    dropped = new.accounting["wudao"]["dropped"]
    if dedup == "exact":
        assert dropped == {"duplicate": 1}
    else:
        assert dropped == {"duplicate": 1, "near-duplicate": 1}
    dataset = Dataset.open(output)
    assert sum(len(rows) for rows in dataset.removed.values()) == 1
    ids = [
        key
        for shard in dataset.documents().shards()
        for row, key in enumerate(shard.documents["id"].to_pylist())
        if row not in shard.removed
    ]
    kept = [page(1), page(2), page(3), *([near] if dedup == "exact" else [])]
    assert sorted(ids) == sorted(record["uniqueKey"] for record in kept)
    assert read_manifest(output) == manifest
