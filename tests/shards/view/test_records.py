"""Records and documents are found at once or page by page, and not after their removal."""

import random
import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from tests.shards.conftest import EOS, PIECES
from tests.shards.datasets import put_dataset, take_down
from tests.shards.view.conftest import NEAR, Show, all_pages

PLACE = re.compile(r">(a\.jsonl:\d+)</a>")


@pytest.mark.parametrize("query", ["", "verdict=dropped", "reason=too-short"])
def test_records_are_found_at_once_and_in_many_pages(query: str, show: Show, built: Path) -> None:
    found = set(PLACE.findall(show(built).get(f"/records?{query}")))
    assert found
    assert found == set(PLACE.findall(all_pages(show(built, seconds=-1.0), f"/records?{query}")))


def test_a_dropped_record_shows_on_top_why_and_marks_the_row(show: Show, built: Path) -> None:
    client = show(built)
    page = client.get("/next?reason=gopher-few-words")
    (words,) = re.findall("<b>words: (\\d+), minimum 50</b>", page)
    assert int(words) < 50
    assert "Too few words." in page
    (row,) = re.findall('<tr class="broken">(.*)</tr>', page)
    assert shown(row) == f"words gopher.words{words}minimum 50"


def test_lists_show_the_beginnings_of_texts(show: Show, built: Path) -> None:
    client = show(built)
    for query, text in (
        ("reason=too-short", "too short"),
        ("reason=bad-json", '{"text": <script>␛}'),
        ("verdict=kept", NEAR[:40]),
    ):
        snippets = re.findall(
            '<small class="snippet"[^>]*>([^<]*)', client.get(f"/records?{query}")
        )
        assert any(unescape(each).strip().startswith(text) for each in snippets), query


@pytest.mark.parametrize("seconds", [60.0, -1.0])
def test_words_are_found_at_their_first_token(show: Show, tmp_path: Path, seconds: float) -> None:
    draw = random.Random(0)
    texts = ["".join(draw.choices("abA", k=draw.randrange(1, 12))) for _ in range(60)]
    tokens = [[*text.encode(), EOS] for text in texts]
    shards = {f"g0001-00/web/{at:05}": {"documents": tokens[at::4]} for at in range(4)}
    put_dataset(tmp_path, shards, pieces=PIECES, special={"eos": EOS})
    texts = [text for at in range(4) for text in texts[at::4]]
    client = show(tmp_path, seconds=seconds)
    for words in ("a", "ab", "bab", "aabba"):
        places = [text.lower().find(words) for text in texts]
        expected = [(number, at) for number, at in enumerate(places) if at >= 0]
        page = all_pages(client, f"/documents?words={words}")
        links = map(unescape, re.findall(r'<p class="about"><a href="([^"]*)"', page))
        values = [dict(re.findall(r"(\w+)=([^&#]*)", link)) for link in links]
        assert [(int(each["n"]), int(each.get("token", 0))) for each in values] == expected


def test_what_is_removed_meanwhile_is_hidden_at_once_at_every_number(
    show: Show, built: Path, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(built, tmp_path / "dataset"))
    clients = [show(directory), show(f"{directory}@1")]
    about = clients[0].get("/documents?name=n39")
    (number,) = re.findall(r">(\d+)</a> [\d,]+ tokens", about)
    (position,) = re.findall(r"position (\d+)", about)
    page, size = f"/document?source=notes&n={number}", len(NEAR.encode())
    of_bytes = f"metric=bytes&least={size}&most={size}"
    records = ("language=en", "verdict=kept&language=en", "metric=gopher.words", of_bytes)
    documents = ("language=en", "words=the", "column=language&match=prefix&value=e")
    searches = [f"/records?{each}" for each in records]
    searches += [f"/documents?name=n39&{each}" for each in documents]
    found = re.compile(rf'>a\.jsonl:{position}</a>|<p class="about"')
    for client in clients:
        assert NEAR[-30:] in shown(client.get(page))
        assert all(found.search(client.get(each)) for each in searches)
    take_down(directory, "n39")
    for client in clients:
        text = client.get(page)
        assert "its text is not shown" in text
        assert "Metrics" not in text
        assert NEAR[-30:] not in shown(text)
        assert not any(found.search(client.get(each)) for each in searches)


def shown(text: str) -> str:
    """Return the visible text of a page."""
    return unescape(re.sub("<[^>]*>", "", text))


def test_a_damaged_table_is_told(show: Show, built: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(built, tmp_path / "dataset"))
    client = show(directory)
    (path,) = directory.glob("g*/audit/*.parquet")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"%\x02\x18\x06reason", b"%\x00\x18\x06reason"))  # no nulls
    page = show(directory).get("/records?reason=bad-json", status=500)
    assert "Definition level histogram size mismatch" in page
    content = bytearray(whole)
    content[200:2000] = random.Random(0).randbytes(1800)
    path.write_bytes(content)
    page = client.get("/records?reason=bad-json", status=500)
    assert "is not a Parquet file, or is damaged" in page
    path.write_bytes(content[:-1])
    assert "was truncated or replaced" in show(directory).get("/records", status=500)
    assert "Overview" in client.get("/")
