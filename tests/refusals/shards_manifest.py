"""Invalid manifests, most of them with a correct sha256."""

from collections.abc import Sequence
from typing import Any

from tests.refusals.refusal import Accepted, Refusal
from tests.refusals.setups import Setup, all_of, with_file
from tests.refusals.setups_shards import (
    ABSENT,
    as_link,
    dataset,
    edited,
    json_changed,
    manifest,
    missing,
    with_manifest,
)


def _row(name: str, *setups: Setup, command: str = "shards inspect data") -> Refusal:
    return Refusal(name=f"manifest: {name}", command=command, setup=all_of(*setups))


_GENERATION = "generations.0"
_SHARD = f"{_GENERATION}.sources.docs.shards.0"
_AUDIT = f"{_GENERATION}.audit.0"

_FIELDS = (
    # Missing and unknown keys, and wrong types.
    ("lineage", ABSENT),
    ("colour", "red"),
    ("number", "3"),
    ("number", True),
    ("corpus", ["x" * 200]),
    ("libraries", {"numpy": 2}),
    ("generations", []),
    # Numbers of manifests.
    ("number", -1),
    ("number", 2**48 + 1),
    ("number", 2),
    (f"{_GENERATION}.number", 0),
    (f"{_GENERATION}.number", 4),
    ("removals.0.number", 0),
    # The tokenizer.
    ("tokenizer.pieces", 0),
    ("tokenizer.pieces", 385),
    ("tokenizer.vocabulary_size", 65537),
    ("tokenizer.dtype", "int64"),
    ("tokenizer.special.mask", 384),
    ("tokenizer.special.mask", -1),
    ("tokenizer.special.eos", ABSENT),
    # Options that `compact` uses.
    ("options.shards", -1),
    ("options.shards", 2**20 + 1),
    ("options.shard_tokens", 2**48 + 1),
    ("options.split_bytes", 2**63 + 1),
    # Names of folders, inputs, shards and tables.
    (f"{_GENERATION}.name", "../x"),
    (f"{_GENERATION}.name", "a/b"),
    (f"{_GENERATION}.name", ""),
    (f"{_GENERATION}.sources", {"a/b": {"shards": [], "validation": []}}),
    (f"{_GENERATION}.inputs.0.crc32c", [2**49]),
    (f"{_SHARD}.path", "/etc/passwd"),
    (f"{_SHARD}.path", "a\nb"),
    (f"{_SHARD}.path", "x" * 5000),
    (f"{_SHARD}.tokens", 2**60),
    (f"{_SHARD}.files.bin.crc32c", -1),
    (f"{_SHARD}.files.idx", ABSENT),
    (f"{_SHARD}.files.txt", {"bytes": 1, "crc32c": 1}),
    # The account.
    (f"{_GENERATION}.accounting.docs", 5),
    (f"{_GENERATION}.accounting.docs", {}),
    (f"{_GENERATION}.accounting.docs.read", -1),
    (f"{_GENERATION}.accounting.docs.odd", "x"),
    (f"{_GENERATION}.accounting.docs.odd", {"a": -1}),
)
"""Paths in a manifest, and invalid values."""

_TAKEN: Sequence[Sequence[Any]] = (
    (
        *("tokenizer.pieces", 384, "tokenizer.vocabulary_size", 65536),
        *("tokenizer.special.mask", 383, "options.shards", 2**20),
        *("options.shard_tokens", 2**48, "options.split_bytes", 2**63),
        *(f"{_GENERATION}.inputs.0.bytes", 2**48, f"{_AUDIT}.rows", 2**48),
        *(f"{_GENERATION}.accounting.docs.odd", 2**48, "number", 2**48),
    ),
    (
        *("tokenizer.pieces", 1, "tokenizer.vocabulary_size", 311, "tokenizer.special.mask", 0),
        *("options.shards", 0, f"{_GENERATION}.inputs.0.bytes", 0),
        *(f"{_GENERATION}.inputs.0.crc32c", [], f"{_AUDIT}.rows", 0, "removals.0.number", 1),
    ),
    ("options.shards", None, "removals", ABSENT),
)
"""Paths in a manifest, and values at their bounds, which are accepted."""


def _shown(value: Any) -> str:
    return "without" if value is ABSENT else f"= {value!r:.40}"


ROWS = (
    *(
        _row(f"{place} {_shown(value)}", manifest, with_manifest(place, value))
        for place, value in _FIELDS
    ),
    *(
        Accepted(
            name=f"manifest: values at their bounds, {number}",
            command="shards inspect data",
            setup=all_of(dataset, with_manifest(*changes)),
            message="data: text, manifest",
        )
        for number, changes in enumerate(_TAKEN)
    ),
    _row(
        "edited without its sha256", dataset, json_changed("data/manifest.json", "corpus", "wudao")
    ),
    _row("another format", dataset, with_manifest("format", "corpusmill-datasets")),
    _row("a newer version", dataset, with_manifest("version", 2)),
    _row("cut short", dataset, edited("data/manifest.json", lambda content: content[:-10])),
    _row(
        "NaN in it",
        dataset,
        edited(
            "data/manifest.json", lambda content: content.replace(b'"number": 3', b'"number": NaN')
        ),
    ),
    _row("nested too deep", dataset, edited("data/manifest.json", lambda _: b"[" * 65 + b"]" * 65)),
    _row("not there", dataset, missing("data/manifest.json")),
    _row(
        "a build that is unfinished",
        dataset,
        missing("data/manifest.json"),
        with_file("data/.work/map/a.json"),
    ),
    _row("no folder"),
    _row("a folder that leads out of the dataset", dataset, as_link("data/removals")),
)
