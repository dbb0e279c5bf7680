import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pipelines.steps.decontaminate import Contamination, load_contamination
from pipelines.steps.units import BATCH_CHARACTERS
from shards.errors import UserError

WORDS = [f"word{index}" for index in range(15)]
QUESTION = "What is the airspeed velocity of an unladen swallow, African or European? Explain why."
CHINESE = "下列哪一项不是光合作用所必需的条件：阳光、水分、二氧化碳还是土壤中的氮肥？"


def save(path: Path, items: Sequence[str]) -> str:
    path.write_text("".join(json.dumps({"text": item}) + "\n" for item in items))
    return str(path)


def loaded(tmp_path: Path, *items: str, n: int = 13) -> Contamination:
    return load_contamination([save(tmp_path / "items.jsonl", items)], n=n)


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "c"]), max_size=25), min_size=1, max_size=4),
    st.lists(st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=40), max_size=6),
    st.integers(1, 9),
)
def test_hits_are_those_of_brute_force(
    tmp_path_factory: pytest.TempPathFactory, items: list[list[str]], texts: list[list[str]], n: int
) -> None:
    wanted: set[tuple[str, ...]] = set()
    for item in items:
        length = min(len(item), n)
        if length >= min(n, 8):
            wanted.update(windows(item, length))
    path = save(tmp_path_factory.mktemp("items") / "a.jsonl", [" ".join(item) for item in items])
    if not wanted:
        with pytest.raises(UserError, match="nothing to look for"):
            load_contamination([path], n=n)
        return
    found = load_contamination([path], n=n)
    assert sum(map(len, found.ngrams.values())) == len(wanted)
    brute = [
        len(wanted & {run for length in range(1, n + 1) for run in windows(text, length)})
        for text in texts
    ]
    assert found.hits([" ".join(text) for text in texts]).tolist() == brute


def windows(words: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + length]) for start in range(len(words) - length + 1)]


def test_containers_and_order_do_not_matter(tmp_path: Path) -> None:
    items = [QUESTION, CHINESE, " ".join(WORDS)]
    lines = "".join(json.dumps({"id": 1, "text": item}) + "\n" for item in items).encode()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "b.jsonl.zst").write_bytes(zstandard.compress(lines))
    (tmp_path / "c.txt").write_text("\n\n".join(items[::-1]) + "\n")
    (tmp_path / "d.json").write_text(json.dumps([{"text": item} for item in items]))
    found = [load_contamination([str(path)]) for path in sorted(tmp_path.iterdir())]
    found.append(load_contamination([str(tmp_path)]))
    assert len(found) == 5
    assert len({benchmark.fingerprint for benchmark in found}) == 1
    assert [benchmark.items for benchmark in found] == [3, 3, 3, 3, 12]
    others = [loaded(tmp_path, *items[:2]), loaded(tmp_path, *items, n=12)]
    assert len({benchmark.fingerprint for benchmark in [found[0], *others]}) == 3


def test_texts_in_any_field_are_found(tmp_path: Path) -> None:
    """Texts are found next to a field `text`, in lists and objects, and as bytes in Parquet."""
    texts = [" ".join(f"{name}{index}" for index in range(9)) for name in "abcde"]
    record = {
        "id": 7,
        "text": texts[0],
        "question": texts[1],
        "choices": {"label": ["A", "B"], "text": [texts[2], "no"]},
        "answers": [{"answer": texts[3]}, {"answer": texts[4]}],
    }
    table = pa.Table.from_pylist([record])
    as_bytes = table.set_column(2, "question", table["question"].cast(pa.binary()))
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(as_bytes, tmp_path / "b.parquet")
    pq.write_table(table.drop_columns(["text"]), tmp_path / "c.parquet")
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    (tmp_path / "a.json").write_text(json.dumps([record]))
    for name in ("a.parquet", "b.parquet", "a.jsonl", "a.json"):
        hits = load_contamination([str(tmp_path / name)]).hits(texts)
        assert hits.tolist() == [1] * 5, name
    hits = load_contamination([str(tmp_path / "c.parquet")]).hits(texts)
    assert hits.tolist() == [0, 1, 1, 1, 1]


def test_runs_are_found_in_every_place_of_long_texts(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    words = [f"w{number}" for number in rng.integers(0, 3000, 60_000).tolist()]
    texts = [" ".join([*words[:before], QUESTION, *words]) for before in (0, 4099, 60_000)]
    assert min(map(len, texts)) > BATCH_CHARACTERS
    assert loaded(tmp_path, QUESTION).hits([QUESTION, *texts, QUESTION]).tolist() == [2] * 5
