"""Writes report.html into the folder of a dataset."""

from collections.abc import Mapping
from typing import Any

from pipelines.report.page import page
from shards.manifest import Manifest
from shards.storage.files import atomic_write
from shards.storage.remote import AnyPath

REPORT, PAGE = "report.json", "report.html"
"""The figures of a run, and the page that shows them; they are not part of the dataset."""


def write_page(output: AnyPath, manifest: Manifest, report: Mapping[str, Any]) -> None:
    """Write the page about the run that made a dataset into its folder."""
    write_html(output / PAGE, page(shown_name(output), manifest, report))


def shown_name(output: AnyPath) -> str:
    """Return the last two folders of a dataset's path, such as build/wudao."""
    return "/".join(filter(None, (output.parent.name, output.name)))


def write_html(path: AnyPath, text: str) -> None:
    """Write a page completely or not at all."""
    with atomic_write(path) as handle:
        handle.write(text.encode())
