"""Documents are found as their texts and columns have them, and shown to the last token."""

import random
import re
import shutil
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.shards.conftest import EOS, PIECES
from tests.shards.datasets import put_dataset, take_down
from tests.shards.view.conftest import Client, Show, all_pages


def found(client: Client, **wanted: str) -> list[tuple[int, int]]:
    """Number and token of the documents that are found, page by page."""
    text = all_pages(client, f"/documents?{urlencode(wanted)}")
    links = map(unescape, re.findall(r'<p class="about"><a href="([^"]*)"', text))
    values = [dict(re.findall(r"(\w+)=([^&#]*)", link)) for link in links]
    return [(int(each["n"]), int(each.get("token", 0))) for each in values]


# Of pile "one" and "two", then of wudao "你好。", "天气 fine", "a", "bc", "def.", "[MASK] is text".
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"words": "天气 f"}, [3]),
        ({"words": "bcdef"}, []),  # from one document into the next
        ({"words": "endoftext"}, []),  # the name of a special token
        ({"language": "zh"}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"column": "path", "value": "part-1", "match": "prefix"}, [1, 3, 5]),
        ({"column": "path", "value": "-1.", "match": "contains"}, [1, 3, 5]),
        ({"column": "path", "value": "part-1.json", "words": "i"}, [3]),
        ({"words": "o", "source": "wudao", "split": "validation"}, [0]),
        ({"words": "e", "shard": "g0001-3f9c12ab/wudao/00002"}, [2]),
    ],
)
def test_documents_are_found_at_once_and_in_many_pages(
    wanted: dict[str, str], expected: list[int], show: Show, pristine: Path
) -> None:
    for seconds in (60.0, -1.0):
        client = show(pristine, seconds=seconds)
        assert [number for number, _ in found(client, **wanted)] == expected


def test_words_are_found_at_their_first_token(show: Show, tmp_path: Path) -> None:
    draw = random.Random(0)
    texts = ["".join(draw.choices("abA", k=draw.randrange(1, 12))) for _ in range(60)]
    tokens = [[*text.encode(), EOS] for text in texts]
    shards = {"g0001-00/web/00000": {"documents": tokens}}
    put_dataset(tmp_path, shards, pieces=PIECES, special={"eos": EOS})
    client = show(tmp_path)
    for length in (1, 2, 3, 5):
        words = "".join(draw.choices("ab", k=length))
        places = [text.lower().find(words) for text in texts]
        expected = [(number, at) for number, at in enumerate(places) if at >= 0]
        assert found(client, words=words) == expected


def test_removed_documents_are_found_by_name_alone(
    show: Show, hostile: Path, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(hostile, tmp_path / "hostile"))
    name = {"name": "id-6<script>"}
    searches: list[dict[str, str]] = [{"language": "<i>"}, {"words": "style"}]
    searches += [{"column": "language", "match": "prefix", "value": "<"}]
    client = show(directory)
    assert [len(found(client, **name, **more)) for more in searches] == [1, 1, 1]
    take_down(directory, name["name"])
    assert [len(found(client, **name, **more)) for more in searches] == [0, 0, 0]
    assert len(found(client, **name)) == 1
    assert "stolen" not in client.get(f"/documents?{urlencode(name)}")
