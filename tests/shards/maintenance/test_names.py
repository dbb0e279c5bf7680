from pathlib import Path

import pyarrow as pa
import pytest

from shards.maintenance.names import DocumentQuery, read_names
from shards.manifest import TRAIN, VALIDATION
from shards.reader import Dataset
from tests.shards.datasets import put_dataset
from tests.shards.library import EOS, FIRST


def found(directory: Path, names: DocumentQuery) -> dict[str, list[str]]:
    """Return the documents that each name finds, as SHARD:ROW."""
    dataset = Dataset.open(directory)
    entries = [
        entry for split in (TRAIN, VALIDATION) for entry in dataset.manifest.shards(split=split)
    ]
    places: dict[str, list[str]] = {}
    for entry, hits in zip(entries, names.find(dataset, entries), strict=True):
        for row, name in zip(hits.rows.tolist(), hits.names.tolist(), strict=True):
            places.setdefault(names.texts[name], []).append(f"{entry.path}:{row}")
    return places


@pytest.mark.parametrize(
    "name",
    [
        *("", "news", "news-0.json", "news-0.json:", "news-0.json:150", "news-0.json:0300"),
        *("news-0.json:-100", "news-0.json:1200", f"news-0.json:{'9' * 5000}", ":100"),
        *(f"{FIRST}/news/00000:12", f"{FIRST}/news/00004:0", "https://news-0.org/a/4"),
    ],
)
def test_names_of_no_document(library: Path, name: str) -> None:
    assert found(library, DocumentQuery([name])) == {}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("https://news-1.org/*", [0, 1, 3, 4, 6, 7, 9, 10]),
        ("*news-1*", [0, 1, 3, 4, 6, 7, 9, 10]),
        ("https://news-1.org/a/1*", [1, 10]),
        ("https://news-1.org/a/1*?q=1", [1, 10]),
        ("https://news-1.org/a/?*", []),
        ("https://news-1.org/a/[14]*", []),
        ("https://news-1xorg/*", []),
        ("news-1*", []),
        ("https://news-1.org/a/4", []),
        ("*NEWS-1*", []),
    ],
)
def test_a_pattern_is_of_whole_urls(library: Path, pattern: str, expected: list[int]) -> None:
    path = f"{FIRST}/news/00001"
    places = found(library, DocumentQuery(patterns=[pattern]))
    assert places.get(pattern, []) == [f"{path}:{row}" for row in expected]


def test_columns_of_other_types_and_none(tmp_path: Path) -> None:
    odd = {
        "documents": [[1, EOS], [2, EOS], [3, EOS]],
        "id": pa.array([7, 8, None], pa.int64()),
        "url": pa.array(["u\nv", None, "u"]).dictionary_encode(),
        "path": pa.array(["b:c", "b", None]),
        "position": pa.array([5, 5, 5], pa.int64()),
    }
    shards = {"g-0/a/00000": odd, "g-0/a/00001": {"documents": [[1, EOS]]}}
    manifest = put_dataset(tmp_path, shards, pieces=[b"x"] * 257, special={"eos": EOS})
    shard, plain = manifest.shards()
    names = DocumentQuery(["7", "u", "b:c:5", "b:5", "None"], patterns=["u*"])
    hits = list(names.find(Dataset(tmp_path, manifest), [plain, shard]))
    pairs = [(row, names.texts[name]) for row, name in zip(*map(list, hits[1]), strict=True)]
    assert pairs == [(0, "7"), (0, "b:c:5"), (0, "u*"), (1, "b:5"), (2, "u"), (2, "u*")]
    assert len(hits[0].rows) == 0
    (alone,) = DocumentQuery(["7"]).find(Dataset(tmp_path, manifest), [plain])
    assert len(alone.rows) == 0


def test_a_file_of_names(tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_bytes("\ufeffa\r\n\n  https://b/c d \n文:1".encode())
    assert read_names(path) == ["a", "https://b/c d", "文:1"]
