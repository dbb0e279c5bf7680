"""The content of documents cannot affect the page, and the page requests nothing."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.quality.catalog import PROFILES, REASONS
from pipelines.report.page import page
from pipelines.segments.rows import QUARANTINE_REASONS
from shards.commands.output import visible
from shards.manifest import read_manifest, sum_shards
from shards.view.labels import chinese, metric_words, reason_words

HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "\"><img src=x onerror=\"document.title='owned'\">' onclick='x",
    "</div></details></section></body></html><!-- ]]> -->",
    "&lt;script&gt; &#x3c;b&#x3e; &nbsp;&",
    "</style><style>*{display:none}</style>",
    "\u202egnp.exe\u2066 \u200f \0\x01\x1b[31mred\x7f\x85\ufffe",
)


def drawn(reference: Path, text: str) -> str:
    """Return the page of a report in which `text` replaces every text of the input."""
    report = json.loads((reference / "report.json").read_bytes())
    for reasons in report["examples"].values():
        for rows in reasons.values():
            rows[0] |= {"text": text, "path": text, "group": text, "language": text}
    for rows in report["groups"].values():
        rows[0]["group"] = text
    return page("build/odd", read_manifest(reference), report)


def test_a_hostile_document_stays_text(reference: Path) -> None:
    html = drawn(reference, "\n".join(HOSTILE))
    names = r"<(?:!|/?)(\w+)"
    assert re.findall(names, html) == re.findall(names, drawn(reference, "harmless\n" * 6))
    assert not {*re.findall(names, html)} & {"script", "img", "link", "iframe", "form"}
    assert not [text for text in HOSTILE[:5] if visible(text) in html]
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'; style-src 'unsafe-inline'" in html


OTHER_REASONS = (
    "contaminated", "duplicate", "empty", "language", "language-score", "near-duplicate",
    "no-answer", "no-title", "subset", "subset-share", "too-short", "url-blocklist",
)  # fmt: skip
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("reason", [*REASONS, *sorted(QUARANTINE_REASONS), *OTHER_REASONS])
def test_every_reason_has_a_sentence_in_both_languages(reason: str) -> None:
    words = reason_words(reason)
    assert words
    assert words.en.endswith(".")
    assert words.zh.endswith("。")
    assert "您" not in words.zh


def test_a_custom_reason_has_no_sentence_and_a_custom_metric_keeps_its_name() -> None:
    assert reason_words("my-language") is None
    assert metric_words("mine.oddity") == ("mine.oddity", "mine.oddity")


@pytest.mark.parametrize("metric", sorted({m for each in PROFILES for m in each.columns}))
def test_every_metric_has_words_in_both_languages(metric: str) -> None:
    words = metric_words(metric)
    assert "_" not in words.en + words.zh
    assert words.en != words.zh


def test_every_label_of_the_templates_has_chinese() -> None:
    for folder in ("pipelines/report", "shards/view"):
        for path in (ROOT / folder / "templates").glob("*.j2"):
            text = path.read_text("utf-8")
            heads = re.findall(r"table\([^\[]*\[([^\]]*)\]", text)
            labels = re.findall(r'both\("([^"]+)"\)', text)
            labels += re.findall(
                r'(?:m\.to|m\.pair|m\.entry|m\.choice)\((?:address\(.*\), )?"([^"]+)"', text
            )
            labels += [head for each in heads for head in re.findall(r'"([^"]+)"', each)]
            assert [
                each for each in labels if chinese(each) == each and each not in {"token", "tokens"}
            ] == [], path


@pytest.mark.parametrize(("times", "asked", "shown"), [
    (1, None, ""),
    (1, 10**12, "too little for a projection"),
    (10**4, None, "Estimated cost of larger corpora"),
])  # fmt: skip
def test_costs_are_projected_only_from_enough_text(
    reference: Path, times: int, asked: int | None, shown: str
) -> None:
    report = json.loads((reference / "report.json").read_bytes())
    for account in report["accounting"].values():
        account["bytes"] = {verdict: times * size for verdict, size in account["bytes"].items()}
    html = page("build/odd", read_manifest(reference), report, corpus_size=asked)
    assert ('id="projection"' in html) == bool(shown)
    assert shown in html


def test_after_an_append_the_totals_come_first(reference: Path) -> None:
    manifest = read_manifest(reference)
    report = json.loads((reference / "report.json").read_bytes())
    for account in report["accounting"].values():
        account["kept"] = 0
    (generation,) = manifest.generations
    html = page("build/odd", replace(manifest, generations=(generation,) * 3), report)
    tokens = sum_shards(manifest.shards(split="train")).tokens
    assert f"<td>{tokens:,}</td>" in html, "the funnel is of the latest"
    total = html.index("documents in all generations")
    assert total < html.index("Latest generation: ") < html.index("new documents kept")
