"""The page of a real run: valid, true to the account, and indifferent to what documents say."""

import re
from typing import Any

import pytest

from pipelines.report.page import page
from shards.manifest import TRAIN, VALIDATION, Manifest, sum_shards
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


def rows(html: str) -> list[list[str]]:
    return [[cell.strip() for cell in row] for row in Page(html).cells]


def number(text: str) -> int:
    return 0 if text == "–" else int(text.replace(",", ""))


def test_figures_of_the_page_are_those_of_the_account(
    manifest: Manifest, report: dict[str, Any]
) -> None:
    cells = rows(page(manifest, report))
    account = manifest.generations[-1].accounting
    starts = [index for index, row in enumerate(cells) if row[:1] == ["read"]]
    assert len(starts) == 2
    for start, (source, figures) in zip(starts, sorted(account.items()), strict=True):
        end = next(i for i in range(start, len(cells)) if cells[i][1].startswith("validation"))
        funnel = cells[start : end + 1]
        assert number(funnel[0][2]) == figures["read"]
        losses = {row[1]: number(row[2]) for row in funnel[1:-3]}
        assert losses == {**figures["dropped"], **figures["quarantined"]}
        assert (funnel[-3][0], number(funnel[-3][2])) == ("kept", figures["kept"])
        for row, split in zip(funnel[-2:], (TRAIN, VALIDATION), strict=True):
            sums = sum_shards(manifest.shards(source, split=split))
            assert row[1].startswith(split)
            assert (number(row[2]), number(row[5])) == (sums.documents, sums.tokens)
        assert number(funnel[-3][5]) == sum(number(row[5]) for row in funnel[-2:])
    assert {"duplicate", "too-short", "glm-few-chars", "wrong-type"} <= {
        row[1] for row in cells if len(row) > 1
    }


def test_headings_are_in_both_languages_and_texts_say_theirs(
    manifest: Manifest, report: dict[str, Any]
) -> None:
    html = page(manifest, report)
    shown = Page(html)
    assert shown.named("html") == [{"lang": "en"}]
    heads = re.findall("<(?:h2|th|a href)[ >].*?</(?:h2|th|a)>", html)
    assert len(heads) > 60
    plain = {head for head in heads if '<span class="zh" lang="zh-CN">' not in head}
    assert plain == {"<th></th>"}, "the column of bars"
    texts = [a["lang"] for a in shown.named("div") if a.get("class") == "text"]
    assert "zh" in texts
    explained = r'<p class="about">[^<]*</p>\s*<p class="about zh" lang="zh-CN">'
    assert len(re.findall(explained, html)) == html.count('<p class="about">') > 8
