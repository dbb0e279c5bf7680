"""In a real browser, pages can be turned and searched, and no text runs a script.

Guarantee: No script in a text runs in the viewer.
"""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser import Browser
from tests.shards.view.conftest import HOSTILE, NEAR, Client, Show

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PHONE = 390


def enter(tab: Browser, client: Client) -> str:
    """Open the address that the command prints, and return the start of all pages' addresses."""
    tab.go(client.server.url)
    tab.wait_for("document.title.startsWith('Overview')")
    return client.server.url.partition("/?")[0]


def test_a_dataset_is_leafed_through_and_searched(tab: Browser, show: Show, built: Path) -> None:
    base = enter(tab, show(built))
    tab.resize(1100, 900)
    assert "key=" not in tab.evaluate("location.href")
    tab.click('a[href^="/documents?source=notes"]')
    tab.click('a[accesskey="n"]')
    assert "at=20" in tab.evaluate("location.href")
    tab.click("article a")
    tab.click(".tokens a:nth-child(7)")
    assert tab.evaluate("location.hash") == "#token"
    tab.click('nav a[href="/documents"]')
    words = json.dumps(NEAR[-20:])
    tab.evaluate(f"document.querySelector('[name=q]').value = {words}")
    tab.click("form[action='/search'] button")
    assert "1 found" in tab.evaluate("document.body.innerText")
    # The chosen language is kept on the pages that follow.
    tab.click("a.switch")
    assert "找到 1 条" in tab.evaluate("document.body.innerText")
    tab.click('nav a[href="/"]')
    assert tab.evaluate("document.title").startswith("概览")
    tab.click("a.switch")
    assert tab.evaluate("document.title").startswith("Overview")
    assert not [event for event in tab.events if event["method"] == "Log.entryAdded"]
    # A page of a different site that links to the viewer gets no content.
    tab.go(f"data:text/html,<a href='{base}/documents'>link</a>")
    tab.click("a")
    assert "contains the key" in tab.evaluate("document.body.innerText")


def test_no_text_runs_a_script_or_asks_for_anything(
    tab: Browser, show: Show, hostile: Path
) -> None:
    client = show(hostile)
    base = enter(tab, client)
    targets = [f"/document?n={number}" for number in range(len(HOSTILE))]
    targets += ["/", "/documents", "/documents?words=script", "/documents?name=" + "<script>"]
    targets += ["/document?n=0&token=3", "/records", "/records?reason=<script>", "/nothing<script>"]
    for target in targets:
        tab.go(base + target)
        # A text that could act would do so when the page loads, or when the pointer touches it.
        tab.evaluate("document.querySelectorAll('main *').forEach(e => e.onmouseover?.())")
        assert "owned" not in tab.evaluate("document.title").partition(" · ")[0]
        assert tab.evaluate("location.href").startswith(base + target.partition("<")[0])
        elements = "script, img, svg, base, style, iframe, object, embed, [onload], [onerror]"
        assert tab.evaluate(f"document.querySelectorAll({json.dumps(elements)}).length") == 0
        assert tab.evaluate("document.querySelectorAll('main').length") <= 1
        outside = "[...document.links].filter(a => a.origin !== location.origin).length"
        assert tab.evaluate(outside) == 0
    asked = tab.requests()
    assert len(asked) > len(targets)
    for each in asked:
        parts = urlsplit(each)
        assert f"{parts.scheme}://{parts.netloc}" == base
        assert "stolen" not in parts.path
    assert {urlsplit(each).path for each in asked} <= {
        "/", "/viewer.css", "/document", "/documents", "/records", "/nothing%3Cscript%3E",
    }  # fmt: skip


def test_the_policy_stops_what_would_get_onto_a_page(
    tab: Browser, show: Show, hostile: Path
) -> None:
    client = show(hostile)
    base = enter(tab, client)
    tab.go(f"{base}/document?n=0")
    since = len(tab.events)
    # Simulates that a text became elements: the browser must run and load nothing.
    tab.evaluate(
        "document.body.insertAdjacentHTML('beforeend', "
        "'<img src=/stolen onerror=\"document.title=`owned`\"><iframe src=/documents></iframe>');"
        "const s = document.createElement('script'); s.textContent = 'document.title = `owned`';"
        "document.body.append(s); const t = document.createElement('script'); t.src = '/stolen';"
        "document.body.append(t)"
    )
    tab.wait_for("performance.now() > 0")
    tab.go(f"{base}/document?n=1")
    blocked = [event for event in tab.events[since:] if event["method"] == "Log.entryAdded"]
    assert len([e for e in blocked if "Content Security Policy" in str(e)]) >= 3
    assert "owned" not in tab.evaluate("document.title")


def test_pages_fit_a_phone_and_are_dark_where_the_reader_is(
    tab: Browser, show: Show, hostile: Path, built: Path
) -> None:
    tab.resize(PHONE, 844, dark=True)
    for directory in (hostile, built):
        base = enter(tab, show(directory))
        targets = ["/", "/documents", "/documents?at=8", "/document?n=9", "/document?n=10"]
        targets += ["/document?n=10&token=5", "/records", "/records?verdict=dropped"]
        targets += ["/records?metric=gopher.words", "/record?row=16", "/nothing"]
        for target in targets:
            tab.go(base + target)
            assert tab.evaluate("document.documentElement.scrollWidth") == PHONE, target
            assert tab.evaluate("innerWidth") == PHONE
            color = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            assert color == "rgb(20, 23, 26)"
    tab.resize(PHONE, 844)
    tab.go(f"{base}/")
    color = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert color == "rgb(252, 252, 251)"
