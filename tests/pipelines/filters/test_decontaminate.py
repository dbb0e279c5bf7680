import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pipelines.filters.decontaminate import Contamination, Decontaminate, load_contamination
from pipelines.filters.units import BATCH_CHARACTERS
from pipelines.readers.reading import Reading
from shards.errors import UserError
from tests.pipelines.filters.batches import ENGLISH, batch
from tests.pipelines.real import real_records

WORDS = [f"word{index}" for index in range(15)]
QUESTION = "What is the airspeed velocity of an unladen swallow, African or European? Explain why."
CHINESE = "下列哪一项不是光合作用所必需的条件：阳光、水分、二氧化碳还是土壤中的氮肥？"


def save(path: Path, items: Sequence[str]) -> str:
    path.write_text("".join(json.dumps({"text": item}) + "\n" for item in items))
    return str(path)


def loaded(tmp_path: Path, *items: str, n: int = 13) -> Contamination:
    return load_contamination([save(tmp_path / "items.jsonl", items)], n=n)


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        (QUESTION, 2),
        (f"Some say: {QUESTION.upper()} Others do not.", 2),
        (QUESTION.replace(",", " --").replace(" ", "\n\n"), 2),
        (QUESTION.replace(" why.", ""), 1),
        (QUESTION.replace("African ", ""), 0),
        (f"{QUESTION} {QUESTION}", 2),
        (" ".join(QUESTION.split()[:12]), 0),
        ("", 0),
    ],
)
def test_runs_of_13_words(tmp_path: Path, text: str, hits: int) -> None:
    counts = loaded(tmp_path, QUESTION).hits(["before", text, ""])
    assert counts.dtype == np.int32
    assert counts.tolist() == [0, hits, 0]


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        (CHINESE, 11),
        (f"题目：{CHINESE}答案是氮肥。", 11),
        (CHINESE.replace("：", "，\n"), 11),
        (f"An English page quotes {CHINESE} and goes on.", 11),
        (CHINESE[:26], 1),
        (CHINESE[:25], 0),
        (CHINESE.replace("光合", "化学"), 2),
        (CHINESE.replace("水分", "土壤"), 0),
    ],
)
def test_runs_of_23_characters_where_there_are_no_spaces(
    tmp_path: Path, text: str, hits: int
) -> None:
    """The item has 33 characters; punctuation does not count."""
    assert loaded(tmp_path, CHINESE).hits([text]).tolist() == [hits]


@pytest.mark.parametrize(
    ("item", "runs", "skipped"),
    [
        (" ".join(WORDS[:7]), {}, 1),
        (" ".join(WORDS[:8]), {8: 1}, 0),
        (" ".join(WORDS[:12]), {12: 1}, 0),
        (" ".join(WORDS[:13]), {13: 1}, 0),
        (" ".join(WORDS), {13: 3}, 0),
        ("一二三四五六七八九十百千万", {}, 1),
        ("一二三四五六七八九十百千万亿", {14: 1}, 0),
        ("one two three 一二三四五六七八九十百", {14: 1}, 0),
        ("", {}, 1),
    ],
)
def test_short_items_are_looked_for_as_a_whole_or_not_at_all(
    tmp_path: Path, item: str, runs: dict[int, int], skipped: int
) -> None:
    found = loaded(tmp_path, item, "long enough " * 7)
    counts = {length: len(hashes) for length, hashes in found.runs.items()}
    assert counts.pop(13) == 2 + runs.get(13, 0)
    assert counts == {length: count for length, count in runs.items() if length != 13}
    assert (found.items, found.skipped) == (2, skipped)
    assert found.hits([f"and {item} or"])[0] == sum(runs.values())


def test_a_run_does_not_cross_from_one_text_into_the_next(tmp_path: Path) -> None:
    found = loaded(tmp_path, " ".join(WORDS[:13]))
    halves = [" ".join(WORDS[:6]), " ".join(WORDS[6:13])]
    assert found.hits(halves).tolist() == [0, 0]
    assert found.hits([" ".join(halves)]).tolist() == [1]
    assert found.hits([]).tolist() == []


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
    assert sum(map(len, found.runs.values())) == len(wanted)
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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": 7}\n', r'no text in the item at 0: b\'{"text": 7}\''),
        ("a.jsonl", b'{"text": "x"}\n[1]\n', r"damaged at byte 14 \(not-an-object\)"),
        ("a.jsonl", b'{"text": "x"}\n{"text": \n', r"damaged at byte 14 \(bad-json\)"),
        ("a.txt", b"too short\nboth\n", r"none of the 2 items has 8 words"),
        ("a.txt", b"caf\xe9 au lait\n", r"damaged at byte 0 \(bad-utf8\)"),
    ],
)
def test_what_is_no_benchmark_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        load_contamination([str(tmp_path / name)])


def test_without_a_text_every_string_is_an_item(tmp_path: Path) -> None:
    item = {"question": QUESTION, "choices": {"text": [CHINESE, "no"], "label": ["A", "B"]}, "n": 3}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(item) + "\n")
    found = load_contamination([str(path)])
    assert (found.items, found.skipped) == (5, 3)
    assert found.fingerprint == loaded(tmp_path, QUESTION, CHINESE).fingerprint


def test_strings_are_found_at_any_depth(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a":' + 500 * '[{"b":' + json.dumps(QUESTION) + 500 * "}]" + "}\n")
    found = load_contamination([str(path)])
    assert (found.items, found.skipped) == (1, 0)
    assert found.fingerprint == loaded(tmp_path, QUESTION).fingerprint


def test_other_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing\.jsonl does not exist"):
        load_contamination([str(tmp_path / "nothing.jsonl")])
    with pytest.raises(UserError, match="Runs of 0 words"):
        load_contamination([str(tmp_path)], n=0)


def test_no_hits_by_chance(tmp_path: Path) -> None:
    """100,000 other runs against 3,000: with 64 bits one in 6e10 would agree."""
    rng = np.random.default_rng(7)
    numbers = [" ".join(map(str, rng.integers(0, 10**6, 3012).tolist())) for _ in range(34)]
    found = loaded(tmp_path, numbers[0])
    assert sum(map(len, found.runs.values())) == 3000
    assert found.hits(numbers[1:]).tolist() == [0] * 33
    assert found.hits(numbers[:1]).tolist() == [3000]
    assert (np.diff(found.runs[13].astype(object)) > 0).all(), "sorted and distinct"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pieces_of_real_text_are_found_in_it(tmp_path: Path, language: str) -> None:
    records = real_records(f"bench/{language}.jsonl.zst", Reading(text_fields=("text",)), most=400)
    texts = [record.value["text"] for record in records]
    items = [text[start : start + 90] for text in texts[::7] for start in range(0, len(text), 800)]
    found = loaded(tmp_path, *items)
    hits = found.hits(texts)
    assert (hits > 0).sum() > 50
    # Whatever stands beside a text in its batch decides nothing.
    assert [found.hits([text])[0] for text in texts[:100]] == hits[:100].tolist()


def test_runs_are_found_in_every_place_of_long_texts(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    words = [f"w{number}" for number in rng.integers(0, 3000, 60_000).tolist()]
    texts = [" ".join([*words[:before], QUESTION, *words]) for before in (0, 4099, 60_000)]
    assert min(map(len, texts)) > BATCH_CHARACTERS
    assert loaded(tmp_path, QUESTION).hits([QUESTION, *texts, QUESTION]).tolist() == [2] * 5


def test_benchmarks_in_texts_are_dropped_and_counted(tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text(f"{ENGLISH} And so it stayed.\n")
    decontaminate = Decontaminate([str(tmp_path / "test.txt")])
    verdict = decontaminate(batch(CHINESE, f"Once more: {ENGLISH}"))
    assert verdict.reasons.to_pylist() == [None, "contaminated"]
    hits = verdict.batch["contamination.ngrams"].to_pylist()
    assert hits[0] == 0 < hits[1]
    assert "decontaminate" in decontaminate.facts
