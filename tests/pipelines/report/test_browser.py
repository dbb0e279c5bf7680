"""In a real browser, nothing in a hostile document runs, loads or breaks the page's layout."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.report.page import page
from shards.manifest import read_manifest
from tests.browser import Browser
from tests.pipelines.report.test_pictures import counted

pytestmark = [pytest.mark.slow, pytest.mark.browser]


OF_PICTURES = """(() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  const found = [], labels = [];
  const shown = chosen => [...document.querySelectorAll(chosen)].filter(e => e.offsetWidth).length;
  const meet = (a, b) => a.right - b.left > .5 && b.right - a.left > .5
    && a.bottom - b.top > 1.5 && b.bottom - a.top > 1.5;
  const pictures = [...document.querySelectorAll(".picture")];
  for (const picture of pictures) {
    const box = picture.getBoundingClientRect();
    const of = picture.getAttribute("aria-label").slice(0, 60);
    const texts = [...picture.querySelectorAll("p > span")];
    const boxes = texts.map(text => text.getBoundingClientRect());
    boxes.forEach((a, i) => {
      const text = texts[i].innerText;
      labels.push(text);
      if (a.left < box.left - .5 || a.right > box.right + .5 || a.top < box.top - 1.5
          || a.bottom > box.bottom + 1.5) found.push([of, text, "leaves its picture"]);
      boxes.slice(i + 1).forEach((b, j) => {
        if (meet(a, b)) found.push([of, text, texts[i + 1 + j].innerText]);
      });
    });
  }
  const wide = [...document.querySelectorAll(".wide")];
  wide[0].focus();
  const style = getComputedStyle(wide[0]);
  return {
    found, labels, pictures: pictures.length, focused: document.activeElement === wide[0],
    scrolling: wide.filter(table => table.scrollWidth > table.clientWidth).length,
    shades: style.backgroundAttachment,
    english: shown("th .en"), chinese: shown("th .zh"),
    root: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  };
})()"""

NAMES = [
    *(f"encyclopaedia-of-technical-and-literary-prose-{number:02}" for number in range(20)),
    *(f"zhongwen_baike_quanshu_yu_jishu_wenxian_heji.{number}" for number in range(20)),
]


def crowded(report: dict[str, Any]) -> None:
    """Give a report forty sources with long names, many groups, and tiny and huge figures."""
    for part in ("funnel", "accounting", "examples", "cpu_seconds"):
        one = report[part].pop("wudao")
        report[part] = {name: one for name in NAMES}
    groups = [*("百科全书与技术文献及文学作品" * 3 + str(n) for n in range(15)), *NAMES[:15]]
    row = report["groups"]["wudao"][0]
    report["groups"] = {NAMES[0]: [{**row, "group": group} for group in groups]}
    few, shares = counted(*[0.5] * 300, 1.0, 7.0), counted(*[0.0] * 98, 0.01, 0.02)
    columns = {
        "bytes": counted(0, 1, 30, 1e3, 1e6, 1e9, 1e12),
        "tokens": counted(610, 660, 690),
        "score": few,
        "zeros": shares,
        "huge": counted(0, 0.02, 1e15, 9e15),
        "near one": counted(*[0.99] * 500, 1.0, 1.02),
    }
    report["histograms"] = {
        name: {column: {"kept": counts, "dropped": counts} for column, counts in columns.items()}
        for name in NAMES[:3]
    }
    bounds = (0, 1e-6, 0.01, 0.5, 0.51, 0.52, 1, 650, 1e9)
    report["rules"] = {
        language: [
            {"metric": metric, "comparison": comparison, "bound": bound, "reason": "few"}
            for metric in columns
            for comparison, bound in zip("<>" * 5, bounds, strict=False)
        ]
        for language in ("zh", "en", "a_language_with_a_very_long_name_indeed", "*")
    }
    own = {"comparison": "<", "bound": 0.7, "reason": "few"}
    report["rules"]["汉语"] = [{**own, "metric": metric} for metric in columns]


@pytest.mark.parametrize("width", [500, 1280])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_labels_of_pictures_overlap_however_crowded(
    reference: Path, tmp_path: Path, tab: Browser, width: int, language: str
) -> None:
    report = json.loads((reference / "report.json").read_bytes())
    crowded(report)
    (tmp_path / "page.html").write_text(page("build/crowded", read_manifest(reference), report))
    tab.resize(width, 2000)
    tab.go((tmp_path / "page.html").as_uri())
    tab.evaluate(f"document.querySelector('label[for={language}]').click()")
    measured = tab.evaluate(OF_PICTURES)
    assert measured["found"] == []
    assert measured["pictures"] > 20
    assert len(measured["labels"]) > 240
    minimum = {"en": "minimum", "zh": "下限"}[language]
    assert {text for text in measured["labels"] if "汉" in text} == {f"{minimum} 0.7 汉语"}
    assert measured["root"] == 0
    assert measured["focused"]
    assert measured["shades"] == "local, local, scroll, scroll"
    # The page shows one language at a time, which can be chosen even if scripts are off.
    other = "zh" if language == "en" else "en"
    shown = {"en": measured["english"], "zh": measured["chinese"]}
    assert shown[language] > 100
    assert shown[other] == 0
