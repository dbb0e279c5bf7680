"""The page of a real run: valid, true to the account, and indifferent to what documents say."""

from typing import Any

import pytest

from pipelines.report.page import page
from shards.manifest import Manifest
from shards.shown import visible
from tests.pipelines.report.reading import Page

HOSTILE = {
    "script": "</script><script>document.title='owned'</script>",
    "attribute": "\"><img src=x onerror=\"document.title='owned'\">' onclick='x",
    "closing": "</div></details></section></body></html><!-- ]]> -->",
    "entity": "&lt;script&gt; &#x3c;b&#x3e; &nbsp;&",
    "style": "</style><style>*{display:none}</style>",
    "direction": "\u202egnp.exe\u2066 \u200f",
    "controls": "\0\x01\x1b[31mred\x7f\x85\ufffe",
    "long line": "x" * 100_000,
    "marks": "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A" * 100,
}


def hostile(report: dict[str, Any], text: str) -> None:
    """Put a text wherever a report holds text of the input."""
    for reasons in report["examples"].values():
        for rows in reasons.values():
            rows[0] |= {"text": text, "path": text, "group": text, "language": text}
    for rows in report["groups"].values():
        rows[0]["group"] = text


def test_the_page_is_valid_and_asks_for_nothing(manifest: Manifest, report: dict[str, Any]) -> None:
    html = page(manifest, report)
    shown = Page(html)
    assert not shown.named("script")
    assert not {"img", "link", "iframe", "object", "base", "form"} & {tag for tag, _ in shown.tags}
    targets = [attributes["href"] for attributes in shown.named("a")]
    ids = [attributes["id"] for attributes in shown.named("section")]
    assert len(targets) > 8
    assert targets == [f"#{name}" for name in ids]
    assert "url(" not in html
    assert "@import" not in html
    policy = {attributes.get("content") for attributes in shown.named("meta")}
    assert "default-src 'none'; style-src 'unsafe-inline'" in policy


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_stays_text(
    manifest: Manifest, report: dict[str, Any], name: str
) -> None:
    hostile(report, "harmless")
    plain = Page(page(manifest, report))
    hostile(report, HOSTILE[name])
    shown = Page(page(manifest, report))
    assert visible(HOSTILE[name]) in shown.text
    assert [tag for tag, _ in shown.tags] == [tag for tag, _ in plain.tags]
    allowed = {"class", "style", "id", "dir", "open", "href", "lang"}
    allowed |= {"role", "aria-label", "tabindex"}  # of what scrolls
    elements = [attributes for tag, attributes in shown.tags if tag in ("div", "bdi", "details")]
    assert {attribute for attributes in elements for attribute in attributes} <= allowed
