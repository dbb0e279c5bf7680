"""Writes report.html beside a dataset."""

from collections.abc import Mapping
from typing import Any

from pipelines.report.page import page
from shards.manifest import Manifest
from shards.storage.files import atomic_write
from shards.storage.remote import AnyPath

REPORT, PAGE = "report.json", "report.html"
"""What is known of a run, as figures and as a page: about the run, not part of the dataset."""


def write_page(output: AnyPath, manifest: Manifest, report: Mapping[str, Any]) -> None:
    """Write the page of the run that made a dataset into its folder."""
    write_html(output / PAGE, page(manifest, report))


def write_html(path: AnyPath, text: str) -> None:
    """Write a page, whole or not at all."""
    with atomic_write(path) as handle:
        handle.write(text.encode())
