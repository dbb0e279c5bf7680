"""Summarizes a dataset in a few rows from its manifest, also as HTML for notebooks."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from shards.commands.output import visible_line
from shards.manifest import TRAIN, VALIDATION, Manifest, ShardEntry, sum_shards

FIGURES = ("documents", "tokens", "shards", "MB")
"""The names of the figures of shards, as the head of a table."""


def summary_html(manifest: Manifest, directory: str) -> str:
    """Return HTML about a dataset for a notebook: a heading, and a row per source and split.

    Args:
        manifest: The manifest of the dataset.
        directory: The folder of the dataset, as shown to people.
    """
    tokenizer = manifest.tokenizer
    about = (
        f"{directory}: {manifest.corpus}, manifest {manifest.number}, generations: "
        f"{len(manifest.generations)}, {tokenizer.name}, {tokenizer.pieces:,} pieces"
    )
    return f"<p>{escape(visible_line(about))}</p>{html_table(source_rows(manifest))}"


def html_table(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as an HTML table whose head is the first row; the text of cells is escaped."""
    head, *others = [[escape(visible_line(str(cell))) for cell in row] for row in rows]
    lines = [f"<tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in others]
    return f"<table>{''.join(lines)}</table>"


def source_rows(manifest: Manifest) -> Iterator[tuple[str, ...]]:
    """Yield a head and the figures of every source and split."""
    yield "source", *FIGURES
    for name, split in source_splits(manifest):
        label = name if split == TRAIN else f"{name} {split}"
        yield label, *figures(manifest.shards(name, split=split))


def figures(shards: Iterable[ShardEntry]) -> Sequence[str]:
    """Return the values of FIGURES for some shards as text."""
    sums = sum_shards(shards)
    return f"{sums.documents:,}", f"{sums.tokens:,}", f"{sums.shards}", f"{sums.bytes / 1e6:,.1f}"


def source_splits(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the pairs of source and split: training for every source, validation if it exists."""
    for name in manifest.sources():
        yield name, TRAIN
        if manifest.shards(name, split=VALIDATION):
            yield name, VALIDATION
