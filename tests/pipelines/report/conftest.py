import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.run.build import build
from shards import manifest as manifests
from shards.manifest import Manifest
from tests.pipelines.runs import page, small, write_wudao

NUMBER = {"content": 17, "title": "this page has a number where its text should be"}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of two sources with rules, duplicates, short pages and one that cannot be read."""
    folder = tmp_path_factory.mktemp("report")
    pages = [page(number, f"第{number}页很长。" * (20 + number)) for number in range(60)]
    pages += [page(number) for number in range(60, 65)]
    short = [{**page(number), "content": "too short", "title": ""} for number in range(100, 130)]
    write_wudao(folder / "one" / "part-1.json", [*pages, *pages[:5], *short, NUMBER])
    write_wudao(folder / "two" / "part-<b>&.json", [*pages[50:], *pages[:10:2]])
    options = small(
        folder / "out",
        f"one={folder / 'one'}",
        f"two={folder / 'two'}",
        quality=("glm",),
        threshold=("glm.min_chars=150",),
        validation=0.02,
        max_reject_rate=0.1,
        split_bytes=10_000,
    )
    build("pipelines.wudao", options)
    return folder / "out"


@pytest.fixture(scope="session")
def manifest(made: Path) -> Manifest:
    return manifests.read_manifest(made)


@pytest.fixture
def report(made: Path) -> dict[str, Any]:
    """What report.json of that dataset holds; a test may change it."""
    content: dict[str, Any] = json.loads((made / "report.json").read_bytes())
    return content
