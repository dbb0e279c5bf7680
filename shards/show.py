"""Shows datasets as text: an overview on one screen, one document, or statistics."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc

from shards.commands.output import quantity
from shards.errors import UserError
from shards.format import ARROW
from shards.manifest import Generation, sum_shards
from shards.reader import Dataset, Documents
from shards.storage.arrow import reraise_as_damage
from shards.summary import FIGURES, figures, source_rows, source_splits

_NUM_IDS = 32
_WIDTH = 80
_LINE = "{:<24} {:>12} {:>16} {:>8} {:>10}"
_GENERATION = "{:>10}  {:<15} {:>8} {:>6} {:>10} {:>13} {:>6} {:>8} {:>7}"
NUM_FIRST, NUM_LAST, MIN_HIDDEN = 2, 8, 2
"""The numbers of first and last generations to show, and the minimum number to hide."""

MAX_REMOVALS, MAX_SOURCES = 4, 13
"""The maximum numbers of lines of removals and of sources on one screen, headings included."""

_QUANTILES = (0.5, 0.9)


_SHORT = {"min_chars": 101}
DEFAULT_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "": {
        "dedup": "exact",
        "language_threshold": 0.5,
        "languages": ["en", "zh"],
        "lid_model": "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83",
        "minhash_threshold": 0.7,
        "pii": "keep",
        "sample": 1.0,
        "shard_tokens": 100_000_000,
        "split_bytes": 128 << 20,
        "validation": 0.001,
    },
    "cc_news": _SHORT,
    "fineweb": {"min_chars": 1},
    "openwebtext": {**_SHORT, "language_threshold": 0.0, "languages": ["en"]},
    "pile": {"subsets": "all"},
    "text": {"format": "auto", "id_field": "id", "min_chars": 1, "text_field": "text"},
    "wudao": {**_SHORT, "title": "unless-repeated", "title_separator": " "},
    "zhidao": {**_SHORT, "min_best_chars": 11},
    "zhihu": {**_SHORT, "min_votes": 1001},
}
"""Defaults of the pipelines' options, except disabled ones, for all corpora and for each one."""


def overview(dataset: Dataset, *, everything: bool = False) -> Iterator[str]:
    """Yield the lines that describe a dataset on one screen, or everything in the manifest."""
    manifest = dataset.manifest
    tokenizer = manifest.tokenizer
    yield f"{dataset.directory}: {manifest.corpus}, manifest {manifest.number}"
    yield f"identity   {manifest.identity}"
    yield (
        f"tokenizer  {tokenizer.name} ({tokenizer.spec}), {tokenizer.pieces:,} pieces, "
        f"padded to {tokenizer.vocabulary_size:,}, {tokenizer.dtype}"
    )
    if everything:
        yield f"special    {_pairs(tokenizer.special)}"
        yield f"options    {_pairs(manifest.options)}"
        yield f"libraries  {_pairs(manifest.libraries)}"
    else:
        changed = dict(changed_options(manifest.corpus, manifest.options))
        options = _pairs(changed) or "the defaults (--all shows them)"
        yield from textwrap.wrap(f"options    {options}", _WIDTH, subsequent_indent=" " * 11)
    removals = [
        f"removed    {quantity(removal.documents.rows, 'document')} at manifest {removal.number}: "
        f"{removal.reason}"
        for removal in manifest.removals
    ]
    yield from _first(removals, None if everything else MAX_REMOVALS, what="removals")
    yield ""
    yield from generations(dataset)
    yield ""
    rows = [_LINE.format(*cells) for cells in source_rows(dataset.manifest)]
    yield from _first(rows, None if everything else MAX_SOURCES, what="sources and splits")


def changed_options(corpus: str, options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the options that differ from the defaults; a model is shown as the start of its hash.

    The tokenizer is left out: a dataset always has one.

    Args:
        corpus: The name of the corpus, which may have different defaults.
        options: The options of the dataset, or of one of its sources.
    """
    usual = {**DEFAULT_OPTIONS[""], **DEFAULT_OPTIONS.get(corpus, {})}
    for name, value in options.items():
        shown = value
        if name == "corpora":
            shown = [f"{source}={_source(each)}" for source, each in value.items()]
        elif isinstance(value, Mapping) and "profiles" in value:
            shown = value["profiles"]
        if shown and shown not in (["none"], usual.get(name)) and name != "tokenizer":
            is_hash = isinstance(shown, str) and re.fullmatch("[0-9a-f]{64}", shown)
            yield name, f"{shown[:8]}…" if is_hash else shown


def _source(options: Mapping[str, Any]) -> str:
    """Return the corpus of a source with the options that differ from the defaults."""
    others = {name: value for name, value in options.items() if name != "corpus"}
    changed = _pairs(dict(changed_options(options["corpus"], others)))
    return f"{options['corpus']} ({changed})" if changed else str(options["corpus"])


def _first(lines: Sequence[str], most: int | None, *, what: str) -> Iterator[str]:
    """Yield lines; if there are more than `most`, only the first of them and how many are left."""
    yield from lines[:most]
    if left := len(lines[most:]) if most else 0:
        yield f"…          {left:,} more {what} (--all)"


def generations(dataset: Dataset) -> Iterator[str]:
    """Yield a line for each generation; if there are many, only for the first and the last ones."""
    entries = dataset.manifest.generations
    yield _GENERATION.format("generation", "name", "manifest", "inputs", *FIGURES, "removed")
    num_hidden = len(entries) - NUM_FIRST - NUM_LAST
    for number, generation in enumerate(entries, 1):
        if num_hidden < MIN_HIDDEN or not NUM_FIRST < number <= NUM_FIRST + num_hidden:
            yield _generation(dataset, number, generation)
        elif number == NUM_FIRST + 1:
            yield f"{'…':>10}  {num_hidden:,} more, to {NUM_FIRST + num_hidden:,}"


def _generation(dataset: Dataset, number: int, generation: Generation) -> str:
    shards = generation.shards()
    removed = sum(len(dataset.removed.get(shard.path, ())) for shard in shards)
    inputs = f"{len(generation.inputs):,}"
    cells = (number, generation.name, generation.number, inputs, *figures(shards), f"{removed:,}")
    return _GENERATION.format(*cells)


def document(dataset: Dataset, number: int, *, source: str | None, split: str) -> Iterator[str]:
    """Yield the lines that show one document: its text, its tokens and its origin.

    Raises:
        UserError: there is no such document, or no such source.
    """
    documents = dataset.documents(source, split=split)
    try:
        shard, row = documents.locate(number)
    except IndexError as error:
        raise UserError(
            f"there is no {split} document {number}: {dataset.directory} has {len(documents)}, "
            "counted from 0."
        ) from error
    tokens = shard[row]
    yield from dataset.vocabulary.decode(tokens).split("\n")
    yield ""
    yield f"document  {number} of {len(documents):,} ({split})"
    yield f"shard     {shard.entry.path}, row {row}"
    more = " …" if len(tokens) > _NUM_IDS else ""
    yield f"tokens    {len(tokens):,}"
    yield f"ids       {' '.join(map(str, tokens[:_NUM_IDS].tolist()))}{more}"
    for name in shard.documents.column_names:
        if name != "tokens":
            yield f"{name:<9} {shard.value(name, row)}"


def statistics(dataset: Dataset) -> Iterator[str]:
    """Yield the lines with the statistics of every source and split, then the accounting."""
    for name, split in source_splits(dataset.manifest):
        documents = dataset.documents(name, split=split)
        if sum_shards(documents.entries).documents:
            yield from _statistics(f"{name} {split}", documents)
    for generation in dataset.manifest.generations:
        if generation.accounting:
            yield f"accounting of {generation.name}"
            yield from (f"  {key:<40} {value}" for key, value in _leaves(generation.accounting))


def _pairs(values: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={_shown(value)}" for key, value in sorted(values.items()))


def _shown(value: object) -> object:
    if isinstance(value, list):
        return ",".join(map(str, value))
    is_hidden = isinstance(value, str) and value != value.strip()
    return repr(value) if is_hidden else value


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in sorted(values.items()):
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", f"{value:,}" if isinstance(value, int) else value


def _statistics(label: str, documents: Documents) -> Iterator[str]:
    """Yield the statistics of some documents; only one shard is open at a time."""
    lengths: Counter[int] = Counter()
    languages: Counter[str] = Counter()
    text_bytes = removed = removed_tokens = 0
    for shard in documents.shards():
        shard.check_lengths()
        removed += len(shard.removed)
        removed_tokens += int(shard.lengths[shard.removed].sum(dtype=np.int64))
        with reraise_as_damage(shard.file(ARROW)):
            lengths.update(shard.value_counts("tokens"))
            languages.update(shard.value_counts("language"))
            if "bytes" in shard.documents.column_names:
                text_bytes += int(pc.sum(shard.documents["bytes"]).as_py() or 0)
    num_tokens = sum(length * count for length, count in lengths.items())
    num_documents = lengths.total()
    mean = num_tokens / num_documents
    median, p90 = _quantiles(lengths)
    yield f"{label}: {quantity(num_documents, 'document')}, {num_tokens:,} tokens"
    yield f"  tokens per document: mean {mean:,.1f}, median {median:,}, 90th percentile {p90:,}"
    if text_bytes:
        yield f"  bytes per token: {text_bytes / num_tokens:.2f}"
    if removed:
        yield f"  removed: {quantity(removed, 'document')}, {removed_tokens:,} tokens"
    for language, count in sorted(languages.items(), key=lambda item: (-item[1], item[0] or "")):
        yield f"  {language:<10} {count:>12,} documents ({count / num_documents:.1%})"


def _quantiles(lengths: Counter[int]) -> Iterable[int]:
    """Return the median and the 90th percentile of the lengths of documents."""
    values = np.array(sorted(lengths))
    ends = np.cumsum([lengths[value] for value in values.tolist()])
    return (int(values[np.searchsorted(ends, ends[-1] * share)]) for share in _QUANTILES)
