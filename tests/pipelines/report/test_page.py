"""The page is indifferent to what documents say, and asks for nothing."""

import json
import re
from pathlib import Path

from pipelines.report.page import page
from shards.commands.shown import visible
from shards.manifest import read_manifest

HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "\"><img src=x onerror=\"document.title='owned'\">' onclick='x",
    "</div></details></section></body></html><!-- ]]> -->",
    "&lt;script&gt; &#x3c;b&#x3e; &nbsp;&",
    "</style><style>*{display:none}</style>",
    "\u202egnp.exe\u2066 \u200f \0\x01\x1b[31mred\x7f\x85\ufffe",
)


def drawn(reference: Path, text: str) -> str:
    """Return the page of a report that has a text wherever it holds text of the input."""
    report = json.loads((reference / "report.json").read_bytes())
    for reasons in report["examples"].values():
        for rows in reasons.values():
            rows[0] |= {"text": text, "path": text, "group": text, "language": text}
    for rows in report["groups"].values():
        rows[0]["group"] = text
    return page(read_manifest(reference), report)


def test_a_hostile_document_stays_text(reference: Path) -> None:
    html = drawn(reference, "\n".join(HOSTILE))
    names = r"<(?:!|/?)(\w+)"
    assert re.findall(names, html) == re.findall(names, drawn(reference, "harmless\n" * 6))
    assert not {*re.findall(names, html)} & {"script", "img", "link", "iframe", "form"}
    assert not [text for text in HOSTILE[:5] if visible(text) in html]
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'; style-src 'unsafe-inline'" in html
