import re
from html import unescape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shards.reader import Dataset
from shards.shown import visible
from shards.view.document import pieces_of
from shards.view.html import between
from shards.vocabulary import Vocabulary, vocabulary_table
from tests.shards.view.conftest import HOSTILE, Show


def vocabulary(pieces: list[bytes], *, special: int) -> Vocabulary:
    table = vocabulary_table(pieces, special={special}, size=len(pieces))
    return Vocabulary(pa.table(table.columns, schema=table.schema))


def test_a_character_of_several_tokens_is_one_piece() -> None:
    known = vocabulary([b"a", b"\xe5", b"\xa4", b"\xa9b", b"\xff", b"<end>"], special=5)

    def shown(*ids: int) -> list[tuple[int, list[int], str]]:
        return [piece[:3] for piece in pieces_of(known, ids, first=10)]

    assert shown(0, 1, 2, 3, 0) == [(10, [0], "a"), (11, [1, 2, 3], "天b"), (14, [0], "a")]
    assert shown(4, 0) == [(10, [4], "�"), (11, [0], "a")]
    assert shown(1, 5, 0) == [(10, [1], "�"), (11, [5], "⟨<end>⟩"), (12, [0], "a")]
    assert shown(1, 2) == [(10, [1, 2], "�")]
    assert shown() == []
    every = [token for _, ids, _ in shown(*[1] * 20) for token in ids]
    assert every == [1] * 20


@pytest.mark.parametrize(
    "text",
    ["می\u200cخواهم", "👩\u200d🔬", "a\u200cb", "\u200c", "\u202ea\u202c", "<a>", "क्\u200dष"],
)
def test_a_text_in_pieces_is_shown_as_the_whole(text: str) -> None:
    pieces = ["", *text, ""]
    shown = "".join(between(*pieces[i : i + 3]) for i in range(len(text)))
    assert shown == visible(text).replace("<", "&lt;").replace(">", "&gt;")


def test_the_pieces_of_a_page_are_the_text(show: Show, hostile: Path) -> None:
    client = show(hostile)
    for number in (0, 7, 9):
        text = client.get(f"/document?n={number}")
        part = text[text.index('<div class="text tokens"') : text.index("</div>")]
        assert unescape(re.sub("<[^>]*>", "", part)) == HOSTILE[number] + "⟨<|endoftext|>⟩"


def test_a_token_leads_back_to_its_source(show: Show, built: Path) -> None:
    client = show(built)
    shard, row = Dataset.open(built).documents("notes").locate(3)
    token = 17
    text = client.get(f"/document?source=notes&n=3&token={token}")
    facts = dict(re.findall(r"<dt>([\w ]+?)(?: <span[^>]*>\w+</span>)?</dt><dd>(.*?)</dd>", text))
    offset = int(shard.offsets[row]) + token
    assert facts["id"] == f"n{3}" or facts["id"]  # of the document; that of the token is before it
    assert f"<dd>{int(shard.tokens[offset])}</dd>" in text
    assert facts["in the shard"] == f"token {offset:,} of {shard.entry.tokens:,}"
    assert facts["in the file"] == f"{shard.entry.path}.bin, byte {2 * offset:,}"
    content = np.fromfile(built / f"{shard.entry.path}.bin", "<u2", count=1, offset=2 * offset)
    assert content[0] == shard[row][token]
    position = shard.value("position", row)
    assert facts["input"] == f"a.jsonl, position {position:,}"
    # And from a place in the shard to the document.
    there = client.get(f"/token?shard={shard.entry.path}&offset={offset}")
    assert facts["in the shard"] in there
    assert 'class="chosen' in there


def test_a_document_has_its_metrics(show: Show, built: Path) -> None:
    text = show(built).get("/document?source=notes&n=3")
    assert re.search(r"gopher\.words</dt><dd>480<", text)


def test_documents_are_leafed_through(show: Show, built: Path) -> None:
    client = show(built)
    text, numbers = client.get("/document?n=0"), [0]
    while after := re.findall('<a href="([^"]*)" accesskey="n"', text):
        text = client.get(unescape(after[0]))
        numbers += [int(re.findall("<title>Document ([0-9]+)", text)[0])]
    assert numbers == list(range(len(Dataset.open(built).documents())))
    (before,) = re.findall('<a href="([^"]*)" accesskey="p"', text)
    assert f"<title>Document {numbers[-2]} " in client.get(unescape(before))


@pytest.mark.parametrize("seed", [0, 1, 17])
def test_a_random_document_is_the_same_for_the_same_seed(
    seed: int, show: Show, built: Path
) -> None:
    client = show(built)
    first = client.get(f"/random?seed={seed}")
    assert first == client.get(f"/random?seed={seed}")
    assert f"seed={seed + 1}" in first
    seen = {client.get(f"/random?seed={seed + i}") for i in range(8)}
    assert len(seen) > 2
