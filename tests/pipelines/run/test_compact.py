"""What a run made is compacted, and then appended to."""

import shutil
from pathlib import Path

import pytest

from pipelines.run.append import append
from pipelines.run.build import build
from shards import Dataset
from shards.__main__ import main as shards
from shards.console import run_module
from shards.manifest import TRAIN, VALIDATION, read_manifest
from shards.storage.files import read_json
from shards.verify import verify
from tests.pipelines.runs import MODULE, own_text, page, small, write_wudao

CHANGES = {"dedup": "minhash", "validation": 0.05, "keep_dropped": True, "shards": 0}


def near(number: int) -> str:
    """A text that is similar to that of a number."""
    return f"{own_text(number)}後"


def documents(output: Path) -> list[tuple[str, str, int]]:
    dataset = Dataset.open(output)
    return sorted(
        (split, *place)
        for split in (TRAIN, VALIDATION)
        for shard in dataset.documents(split=split).shards()
        for place in zip(
            shard.documents["path"].to_pylist(),
            shard.documents["position"].to_pylist(),
            strict=True,
        )
    )


@pytest.mark.slow
def test_what_is_appended_to_a_compacted_dataset_is_what_would_have_been(tmp_path: Path) -> None:
    folder, output, other = (tmp_path / name for name in ("in", "out", "other"))
    write_wudao(folder / "part-1.json", [page(n, own_text(n)) for n in range(60)])
    build(MODULE, small(output, folder, **CHANGES))
    pages = [page(n, own_text(n)) for n in range(50, 90)]
    write_wudao(folder / "part-2.json", [*pages, *(page(n, near(n)) for n in range(10))])
    append(MODULE, small(output, folder, append=True, **CHANGES))
    write_wudao(folder / "part-2b.json", [])  # a generation without segments
    append(MODULE, small(output, folder, append=True, **CHANGES))
    shutil.copytree(output, other)
    assert shards(["compact", str(other)]) == 0
    assert run_module("pipelines.report", [str(other)]) == 0
    assert documents(other) == documents(output)
    # Texts and near texts of both, which the compacted signatures must know.
    pages = [page(n, own_text(n)) for n in (5, 70, *range(90, 120))]
    write_wudao(folder / "part-3.json", [*pages, *(page(n, near(n)) for n in (45, 80))])
    for directory in (output, other):
        append(MODULE, small(directory, folder, append=True, **CHANGES))
        assert list(verify(Dataset.open(directory))) == []
    last, compacted = read_manifest(output).generations[-1], read_manifest(other).generations[-1]
    assert last.accounting["wudao"]["dropped"] == {"duplicate": 2, "near-duplicate": 2}
    assert compacted.accounting == last.accounting
    assert documents(other) == documents(output)
    told = read_json(other / "report.json")["generations"]
    assert [(entry["number"], entry["documents"]) for entry in told] == [(4, 90), (5, 30)]


@pytest.mark.slow
def test_what_stood_at_one_place_then_and_later_is_known(tmp_path: Path) -> None:
    # Both have the same order; a third file has a text that is similar to the later one.
    folder, output = tmp_path / "in", tmp_path / "out"
    options = {**CHANGES, "shards": 1, "append": True}
    for pages in ([own_text(1), own_text(2)], [own_text(3), own_text(2)]):
        write_wudao(folder / "part-1.json", [page(n, one) for n, one in enumerate(pages)])
        append(MODULE, small(output, folder, allow_changed=True, **options))
    assert shards(["compact", str(output)]) == 0
    write_wudao(folder / "part-2.json", [page(n, near(n)) for n in (1, 3, 4)])
    made = append(MODULE, small(output, folder, **options))
    assert made.generations[-1].accounting["wudao"]["dropped"] == {"near-duplicate": 2}
