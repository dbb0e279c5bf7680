import random
import re
import shutil
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pyarrow.parquet as pq
import pytest

from tests.shards.datasets import take_down
from tests.shards.view.conftest import NEAR, Show, all_pages

PLACE_OF_N5 = 11101


def audit_rows(directory: Path) -> list[dict[str, object]]:
    (path,) = directory.glob("g*/audit/*.parquet")
    rows: list[dict[str, object]] = pq.read_table(path).to_pylist()
    return rows


def row_with(directory: Path, reason: str | None) -> int:
    return next(i for i, row in enumerate(audit_rows(directory)) if row["reason"] == reason)


def places(text: str) -> set[str]:
    return set(re.findall(r">(a\.jsonl:\d+)</a>", text))


@pytest.mark.parametrize("query", [{}, {"verdict": "dropped"}, {"reason": "too-short"}])
def test_records_are_found_at_once_and_in_many_pages(
    query: dict[str, str], show: Show, built: Path
) -> None:
    expected = {
        f"a.jsonl:{row['position']}"
        for row in audit_rows(built)
        if all(row[name] == value for name, value in query.items())
    }
    target = f"/records?{urlencode(query)}"
    assert places(show(built).get(target)) == expected
    assert places(all_pages(show(built, seconds=-1.0), target)) == expected


def test_texts_like_those_of_removed_documents_are_not_shown(
    show: Show, built: Path, tmp_path: Path
) -> None:
    """Of a duplicate and of a version: whoever asked for one removal asked for both."""
    directory = Path(shutil.copytree(built, tmp_path / "dataset"))
    take_down(directory, "n39", "n40")
    removed, before = show(directory), show(built)
    for reason in ("duplicate", "near-duplicate"):
        target = f"/record?row={row_with(built, reason)}"
        assert "Its text is not shown" in removed.get(target)
        assert "Its text is not shown" not in before.get(target)


def test_columns_of_removed_documents_are_shown_and_found_nowhere(
    show: Show, built: Path, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(built, tmp_path / "dataset"))
    (removed,) = (i for i, row in enumerate(audit_rows(built)) if row["position"] == PLACE_OF_N5)
    row = audit_rows(built)[removed]
    place = f"a.jsonl:{PLACE_OF_N5}"
    client = show(directory)
    searches = [f"metric=bytes&least={row['bytes']}&most={row['bytes']}", "metric=gopher.words"]
    searches += [f"language={row['language']}", f"verdict=kept&language={row['language']}"]
    for search in searches:
        assert place in places(client.get(f"/records?{search}"))
    take_down(directory, "n5")
    for search in searches:
        found = places(client.get(f"/records?{search}"))
        assert found
        assert place not in found
    assert place not in places(client.get("/records?verdict=kept"))
    text = client.get(f"/record?row={removed}")
    assert "was removed: its other columns are not shown" in text
    assert set(re.findall("<dt>([a-z._]+)", text)) <= {
        "source",
        "order",
        "path",
        "position",
        "ordinal",
    }
    assert "Similar" not in text
    assert re.search(r'href="/document\?', text)


def test_what_is_removed_meanwhile_is_hidden_at_once_at_every_number(
    show: Show, built: Path, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(built, tmp_path / "dataset"))
    clients = [show(directory), show(f"{directory}@1")]
    (number,) = re.findall(r">(\d+)</a> [\d,]+ tokens", clients[0].get("/documents?name=n39"))
    for client in clients:
        assert NEAR[-30:] in shown(client.get(f"/document?source=notes&n={number}"))
    take_down(directory, "n39")
    for client in clients:
        text = client.get(f"/document?source=notes&n={number}")
        assert "its text is not shown" in text
        assert not any(word in text for word in ("a.jsonl:", "Metrics"))
        assert NEAR[-30:] not in shown(text)


def shown(text: str) -> str:
    """What of a page is seen."""
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
    assert "is not a Parquet file, or is damaged" in client.get(
        "/records?reason=bad-json", status=500
    )
    path.write_bytes(content[:-1])
    assert "or is damaged" in client.get("/records", status=500)
    assert "was truncated or replaced" in show(directory).get("/records", status=500)
    assert "Overview" in client.get("/")
