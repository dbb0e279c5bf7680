import random
import re
import shutil
from html import unescape
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest

from shards.reader import Dataset
from shards.view import search
from shards.view.scan import Budget
from shards.view.search import Selection, ShardSearch, Wanted
from tests.shards.view.conftest import NEAR, Show, take_down

FOREVER = Budget(1e9)
SPENT = Budget(-1)


def numbers(directory: Path, wanted: Wanted, **selected: str) -> list[int]:
    """Which documents are found, a page of two at a time without any time to spend."""
    documents = ShardSearch(Dataset.open(directory))
    selection = Selection(**selected)
    start, hits = 0, []
    while start < documents.total(selection):
        found = documents.search(selection, wanted, start=start, most=2, budget=SPENT)
        assert start < found.at <= documents.total(selection)
        hits += [place.number for place in found.hits]
        start = found.at
    whole = documents.search(selection, wanted, start=0, most=999, budget=FOREVER)
    assert [place.number for place in whole.hits] == hits
    assert whole.is_complete
    return hits


# Of pile "one" and "two", then of wudao "你好。", "天气 fine", "a", "bc", "def.", "[MASK] is text".
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted(), [0, 1, 2, 3, 4, 5, 6, 7]),
        (Wanted(words="fine"), [3]),
        (Wanted(words="FINE"), [3]),
        (Wanted(words="天气"), [3]),
        (Wanted(words="ef."), [6]),
        (Wanted(words="bcdef"), []),  # from one document into the next
        (Wanted(words="endoftext"), []),  # the name of a special token
        (Wanted(language="zh"), [0, 1, 2, 3, 4, 5, 6, 7]),
        (Wanted(language="en"), []),
        (Wanted(column="path", value="part-1.json"), [1, 3, 5]),
        (Wanted(column="path", value="part-1", match="prefix"), [1, 3, 5]),
        (Wanted(column="path", value="-1.", match="contains"), [1, 3, 5]),
        (Wanted(column="path", value="part-1", match="exact"), []),
        (Wanted(column="path", value="part-1.json", words="i"), [3]),
        (Wanted(column="path", value="part-0.json", words="e"), [0, 7]),
        (Wanted(column="nothing", value="x"), []),
        (Wanted(column="tokens", value="2"), []),
    ],
)
def test_documents_are_found(wanted: Wanted, expected: list[int], pristine: Path) -> None:
    assert numbers(pristine, wanted) == expected


def test_a_selection_is_a_source_a_split_or_a_shard(pristine: Path) -> None:
    assert numbers(pristine, Wanted(words="o"), source="pile") == [0, 1]
    assert numbers(pristine, Wanted(words="o"), source="wudao") == []
    assert numbers(pristine, Wanted(words="o"), source="wudao", split="validation") == [0]
    assert numbers(pristine, Wanted(words="e"), shard="g0001-3f9c12ab/wudao/00002") == [2]


def test_words_are_found_wherever_blocks_end(
    pristine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = pa.array([bytes([i]) for i in range(256)] + [b"", b"\0"], pa.large_binary())
    rng = random.Random(0)
    for block in (1, 2, 3, 7, 64):
        monkeypatch.setattr(search, "_BLOCK_TOKENS", block)
        for _ in range(50):
            text = bytes(rng.choice(b"ab") for _ in range(40))
            needle = bytes(rng.choice(b"ab") for _ in range(rng.randrange(1, 5)))
            tokens = np.frombuffer(text, np.uint8).astype("<u2")
            found = list(search._positions(tokens, needle, pieces))
            expected = [i for i in range(len(text)) if text.startswith(needle, i)]
            assert found == expected
    monkeypatch.setattr(search, "_BLOCK_TOKENS", 5)
    assert numbers(pristine, Wanted(words="天气 fine")) == [3]


def test_a_name_is_an_id_a_url_or_a_place(show: Show, built: Path, hostile: Path) -> None:
    client = show(built)
    by_id = client.get("/documents?name=n5")
    place = "path a.jsonl · position 11101 · id n5"
    assert place in by_id
    assert "1 found" in by_id
    assert place in client.get("/documents?name=a.jsonl:11101")
    assert "0 found" in client.get("/documents?name=a.jsonl:11102")
    assert "0 found" in client.get("/documents?name=b.jsonl:11101")
    url = quote("javascript:document.title='owned'")
    assert "11 found" in show(hostile).get(f"/documents?name={url}")


def test_a_search_goes_on_where_its_time_was_over(show: Show, pristine: Path) -> None:
    client = show(pristine, seconds=-1.0)
    text, steps = client.get("/documents?words=is+text"), 1
    assert "Searched 0 to 2 of 8 documents: 0 found" in text
    while "to the end" not in text:
        text, steps = client.get(going_on(text)), steps + 1
    assert steps == 4
    assert "1 found" in text


def going_on(text: str) -> str:
    """The address where a search goes on."""
    (target,) = re.findall('<a href="([^"]*)" accesskey="n" rel="next">go on', text)
    return unescape(target)


def test_removed_texts_are_found_by_nobody(show: Show, built: Path, tmp_path: Path) -> None:
    target = f"/documents?words={quote(NEAR[-60:])}"
    assert "1 found" in show(built).get(target)
    directory = Path(shutil.copytree(built, tmp_path / "dataset"))
    take_down(directory, "n39")
    client = show(directory)
    assert "0 found" in client.get(target)
    assert "1 found" in client.get("/documents?name=n39")
    assert NEAR[-20:] not in client.get("/documents?name=n39")


def test_removed_documents_are_found_by_name_alone(
    show: Show, hostile: Path, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(hostile, tmp_path / "dataset"))
    searches = ("language=%3Ci%3E", "column=language&match=prefix&value=%3C", "words=style")
    client = show(directory)
    for more in searches:
        assert "1 found" in client.get(f"/documents?name=id-6%3Cscript%3E&{more}")
    take_down(directory, "id-6<script>")
    for more in searches:
        assert "0 found" in client.get(f"/documents?name=id-6%3Cscript%3E&{more}")
    assert "1 found" in client.get("/documents?name=id-6%3Cscript%3E")


def test_a_text_is_shown_around_the_words_that_were_found(
    show: Show, built: Path, hostile: Path
) -> None:
    text = show(built).get("/documents?words=another+end")
    assert f"<mark>{NEAR[-11:]}</mark></p>" in text
    assert "… " in text
    assert NEAR[:20] not in text
    text = show(hostile).get("/documents?words=%3CScript%3E")
    assert "<mark>&lt;script&gt;</mark>document.title=" in text
