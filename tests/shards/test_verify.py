import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from shards.manifest import ShardEntry, SourceEntry, read_manifest, write_manifest
from shards.reader import Dataset
from shards.verify import verify
from tests.shards.conftest import put_texts
from tests.shards.datasets import put_shard, remove, with_sources


def problems(directory: Path) -> list[str]:
    return list(verify(Dataset.open(directory)))


def test_every_file_is_read(pristine: Path, tmp_path: Path) -> None:
    """One bit in any file is found and named, and nothing else is."""
    named = [path for path, entry in read_manifest(pristine).files() if entry.bytes]
    assert len(named) == 19
    for name in named:
        directory = Path(shutil.copytree(pristine, tmp_path / name.replace("/", "-")))
        content = bytearray((directory / name).read_bytes())
        content[len(content) // 2] ^= 1
        (directory / name).write_bytes(content)
        (problem,) = problems(directory)
        assert problem.startswith(f"{directory / name} has crc32c ")


def test_missing_cut_and_swapped_files_are_all_listed(dataset: Path) -> None:
    first, _, third, fourth = (
        dataset / entry.path for entry in read_manifest(dataset).shards("wudao")
    )
    first.with_suffix(".idx").unlink()
    third.with_suffix(".bin").write_bytes(b"")
    a, b = first.with_suffix(".arrow"), fourth.with_suffix(".arrow")
    a.rename(a.with_suffix(".x"))
    b.rename(a)
    a.with_suffix(".x").rename(b)
    problem_of = {line.split(" ")[0]: line for line in problems(dataset)}
    assert sorted(problem_of) == [
        str(a),
        str(first.with_suffix(".idx")),
        str(third.with_suffix(".bin")),
        str(b),
    ]
    assert "is missing (82 bytes expected)" in problem_of[str(first.with_suffix(".idx"))]
    assert "has 0 bytes, 20 expected" in problem_of[str(third.with_suffix(".bin"))]


def rewrite(
    dataset: Path,
    *,
    documents: Sequence[Sequence[int]] = ((1, 256), (2, 256)),
    order: Sequence[int] = (0, 1),
    prompts: Sequence[int] = (0, 0),
    dtype: str = "<u2",
) -> None:
    """Put a shard that contradicts itself in the place of pile's, with a manifest that names it."""
    manifest = read_manifest(dataset)
    (old,) = manifest.shards("pile")
    entry = put_shard(dataset, old.path, documents, prompts=prompts, order=order, dtype=dtype)
    name(dataset, entry)


def name(dataset: Path, *entries: ShardEntry) -> None:
    """Make `entries` the shards of pile."""
    pile = SourceEntry(shards=entries, validation=())
    write_manifest(dataset, with_sources(read_manifest(dataset), pile=pile))


@pytest.mark.parametrize(
    ("shard", "message"),
    [
        (
            {"documents": [[1, 256], [2, 3]]},
            r"bin: 1 documents, first 1, do not end in eos \(256\)",
        ),
        ({"documents": [[1, 256], [384, 256]]}, r"bin holds token ids 1 to 384, .* has 384"),
        ({"order": [1, 0]}, r"arrow is not sorted by order"),
        ({"prompts": [0, 2]}, r"arrow has a prompt that is negative or not shorter"),
        ({"prompts": [-1, 0]}, r"arrow has a prompt that is negative or not shorter"),
        ({"documents": [[1, 1, 256, 256], []]}, r"arrow has offsets that do not follow"),
        ({"dtype": "<i4"}, r"bin has 16 bytes, which are not 4 tokens of uint16"),
    ],
)
def test_what_checksums_do_not_see(dataset: Path, shard: dict[str, object], message: str) -> None:
    rewrite(dataset)
    assert problems(dataset) == []
    rewrite(dataset, **shard)  # type: ignore[arg-type]  # a table row
    lines = problems(dataset)
    assert any(line.startswith(str(dataset / "g0001-3f9c12ab/pile/00000.")) for line in lines)
    assert any(re.search(message, line) for line in lines), lines


def test_index_and_table_disagree(dataset: Path) -> None:
    one = put_texts(dataset, "g0001-3f9c12ab/pile/00000", ["ab", "c"], order=0)
    two = put_texts(dataset, "g0001-3f9c12ab/pile/other", ["a", "bc"], order=0)
    other = (dataset / f"{two.path}.idx").read_bytes()
    (dataset / f"{one.path}.idx").write_bytes(other)
    name(dataset, replace(one, files={**one.files, "idx": two.files["idx"]}))
    (problem,) = problems(dataset)
    assert "00000.idx has lengths that differ from those in" in problem


def test_shards_out_of_order(dataset: Path) -> None:
    path = "g0001-3f9c12ab/pile"
    high = put_texts(dataset, f"{path}/00000", ["ab", "c"], order=(1 << 63) + 5)
    low = put_texts(dataset, f"{path}/00001", ["ab", "c"], order=5)
    name(dataset, low, high)
    assert problems(dataset) == []
    name(dataset, high, low)
    lines = problems(dataset)
    assert [line.split("pile/")[1] for line in lines] == [
        "00000.arrow holds documents from another shard's range of the order",
        "00001.arrow begins before the end of the previous shard",
        "00001.arrow holds documents from another shard's range of the order",
    ]


def test_a_vocabulary_of_another_size(dataset: Path) -> None:
    manifest = read_manifest(dataset)
    write_manifest(
        dataset, replace(manifest, tokenizer=replace(manifest.tokenizer, vocabulary_size=512))
    )
    (problem,) = problems(dataset)
    assert "has 384 rows, 512 expected" in problem


def test_removals(dataset: Path) -> None:
    remove(dataset, [("wudao", "train", 2, 2), ("pile", "train", 0, 1)])
    assert problems(dataset) == []
    remove(dataset, [("wudao", "train", 2, 0), ("wudao", "train", 2, 0)], number=3)
    remove(dataset, [("wudao", "train", 2, 3)], number=4)
    twice, beyond = problems(dataset)
    assert twice.endswith("0003.arrow removes 1 documents, the manifest says 2")
    assert "0004.arrow removes rows of g0001-3f9c12ab/wudao/train/2 that this" in beyond
