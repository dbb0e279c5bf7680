"""Manifests in which something is wrong, each with the sha256 that belongs to it unless said."""

from collections.abc import Sequence
from typing import Any

from tests.refusals.refusal import Accepted, Refusal
from tests.refusals.scenes import Scene, holding, together
from tests.refusals.scenes_shards import (
    GONE,
    dataset,
    edited,
    holding_json,
    json_changed,
    led_out,
    manifest,
    missing,
    sealed,
)

_AGAIN = r": build the dataset again\.$"


def _row(name: str, says: str, *scenes: Scene, command: str = "shards inspect data") -> Refusal:
    return Refusal(name=f"manifest: {name}", command=command, says=says, scene=together(*scenes))


_GENERATION = "generations.0"
_SHARD = f"{_GENERATION}.sources.docs.shards.0"
_AUDIT = f"{_GENERATION}.audit.0"

_NO_NUMBER = "this number is below 0, or larger than any"
_FIELDS: Sequence[tuple[str, Any, str]] = (
    # Whether it is there, and of which type.
    ("lineage", GONE, r"manifest\.lineage is missing"),
    ("vocabulary", GONE, r"manifest\.vocabulary is missing"),
    ("colour", "red", r"manifest\.colour is not known"),
    ("number", "3", r"manifest\.number is '3', not of type int"),
    ("number", True, r"manifest\.number is True, not of type int"),
    ("number", 3.0, r"manifest\.number is 3\.0, not of type int"),
    ("corpus", None, r"manifest\.corpus is None, not of type str"),
    ("corpus", ["x" * 200], r"manifest\.corpus is \['x{98}…, not of type str"),
    ("options", [], r"manifest\.options is \[\], not of type dict"),
    ("libraries", {"numpy": 2}, r"manifest\.libraries\.numpy is 2, not of type str"),
    ("generations", {}, r"manifest\.generations is \{\}, not of type list"),
    ("generations", [], r"manifest\.generations is empty"),
    # Numbers of manifests.
    ("number", -1, f"number: {_NO_NUMBER}"),
    ("number", 2**48 + 1, f"number: {_NO_NUMBER}"),
    ("number", 2, r"a number is 3, manifest\.number 2"),
    (f"{_GENERATION}.number", 0, r"a number is 0, manifest\.number 3"),
    (f"{_GENERATION}.number", 4, r"a number is 4, manifest\.number 3"),
    ("removals.0.number", 4, r"a number is 4, manifest\.number 3"),
    ("removals.0.number", 0, r"a number is 0, manifest\.number 3"),
    # The tokenizer.
    ("tokenizer.pieces", 0, r"tokenizer: 0 pieces, 384 ids of type 'uint16' and the special ones"),
    (
        "tokenizer.pieces",
        385,
        r"tokenizer: 385 pieces, 384 ids of type 'uint16' and .*: tokens are",
    ),
    ("tokenizer.vocabulary_size", 65537, r"300 pieces, 65537 ids of type 'uint16'"),
    ("tokenizer.dtype", "int64", r"ids of type 'int64' and .*: tokens are uint16 or int32"),
    ("tokenizer.special.mask", 384, r"manifest\.tokenizer: .*'mask': 384.*all ids below the size"),
    ("tokenizer.special.mask", -1, r"manifest\.tokenizer: .*'mask': -1.*all ids below the size"),
    ("tokenizer.special.eos", GONE, r"manifest\.tokenizer: .* and eos ends every document"),
    # Options that compaction goes by.
    ("options.shards", -1, r"manifest\.options\.shards is -1, none that a run has"),
    ("options.shards", 2**20 + 1, r"options\.shards is 1048577, none that a run has"),
    ("options.shards", True, r"manifest\.options\.shards is True, none that a run has"),
    ("options.shard_tokens", 2**48 + 1, r"shard_tokens is 281474976710657, none that a run has"),
    ("options.split_bytes", 2**63 + 1, r"split_bytes is 9223372036854775809, none that a run"),
    # Names of folders, inputs, shards, tables.
    (f"{_GENERATION}.name", "../x", r"'\.\./x' is no path below a folder"),
    (f"{_GENERATION}.name", "a/b", r"'a/b' is no name of a file or folder"),
    (f"{_GENERATION}.name", "", r"'' is no path below a folder"),
    (f"{_GENERATION}.sources", {"a/b": {"shards": [], "validation": []}}, r"'a/b' is no name of"),
    (f"{_GENERATION}.inputs.0.bytes", -1, f"bytes: {_NO_NUMBER}"),
    (f"{_GENERATION}.inputs.0.crc32c", [2**49], rf"crc32c\[0\]: {_NO_NUMBER}"),
    (f"{_SHARD}.path", "/etc/passwd", r"shards\[0\]\.path: '/etc/passwd' is no path below a"),
    (f"{_SHARD}.path", "a//b", r"shards\[0\]\.path: 'a//b' is no path below a folder"),
    (f"{_SHARD}.path", "a\nb", r"shards\[0\]\.path: 'a\\nb' is no path below a folder"),
    (f"{_SHARD}.path", "x" * 5000, r"shards\[0\]\.path: 'x{200}' is no path below a folder"),
    (f"{_SHARD}.documents", -1, f"documents: {_NO_NUMBER}"),
    (f"{_SHARD}.tokens", 2**60, f"tokens: {_NO_NUMBER}"),
    (f"{_SHARD}.files.bin.bytes", -1, f"bytes: {_NO_NUMBER}"),
    (f"{_SHARD}.files.bin.crc32c", -1, f"crc32c: {_NO_NUMBER}"),
    (f"{_SHARD}.files.idx", GONE, r"shards\[0\]\.files: these are \['arrow', 'bin'\], not \("),
    (f"{_SHARD}.files.txt", {"bytes": 1, "crc32c": 1}, r"are \['arrow', 'bin', 'idx', 'txt'\]"),
    (f"{_AUDIT}.path", "..", r"generations\[0\]\.audit\[0\]\.path: '\.\.' is no path below"),
    (f"{_AUDIT}.rows", -1, f"rows: {_NO_NUMBER}"),
    ("vocabulary.path", "/x", r"manifest\.vocabulary\.path: '/x' is no path below a folder"),
    # The account.
    (f"{_GENERATION}.accounting.docs", 5, r"accounting\.docs is 5, not of type dict"),
    (f"{_GENERATION}.accounting.docs", {}, r"manifest\.accounting\.docs\.dropped is missing"),
    (f"{_GENERATION}.accounting.docs.read", -1, rf"docs\.counts\.read: {_NO_NUMBER}"),
    (f"{_GENERATION}.accounting.docs.odd", "x", r"docs\.counts\.odd is 'x', not of type int"),
    (f"{_GENERATION}.accounting.docs.odd", {"a": -1}, rf"docs\.counts\.a: {_NO_NUMBER}"),
)
"""Place, value, and what is said of it."""

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
    ("options.shards", None, "removals", GONE),
)
"""Places and values at the bounds, each of which is taken."""


def _shown(value: Any) -> str:
    return "without" if value is GONE else f"= {value!r:.40}"


ROWS = (
    *(
        _row(f"{place} {_shown(value)}", says + r".*" + _AGAIN, manifest, sealed(place, value))
        for place, value, says in _FIELDS
    ),
    *(
        Accepted(
            name=f"manifest: values at their bounds, {number}",
            command="shards inspect data",
            scene=together(dataset, sealed(*changes)),
            says="data: text, manifest",
        )
        for number, changes in enumerate(_TAKEN)
    ),
    _row(
        "edited without its sha256",
        r"data/manifest\.json was changed after it was written \(its sha256 does not match\):"
        r" restore it from a copy, or build the dataset again\.$",
        dataset,
        json_changed("data/manifest.json", "corpus", "wudao"),
    ),
    _row(
        "another format",
        r"data/manifest\.json is not a dataset's manifest: its format is not 'corpusmill-dataset'",
        dataset,
        sealed("format", "corpusmill-datasets"),
    ),
    _row(
        "a list",
        r"is not a dataset's manifest: its format is not",
        holding_json("data/manifest.json", []),
    ),
    _row(
        "a newer version",
        r"data/manifest\.json was written by a newer corpusmill \(manifest version 2; this one"
        r" reads version 1\): upgrade corpusmill\.$",
        dataset,
        sealed("version", 2),
    ),
    _row(
        "cut short",
        r"data/manifest\.json holds no valid JSON \(.*\): it was changed after it was written\."
        r" Restore it from a copy, or delete it and rerun the command that made it\.$",
        dataset,
        edited("data/manifest.json", lambda content: content[:-10]),
    ),
    _row(
        "not UTF-8",
        r"data/manifest\.json holds no valid JSON \(",
        dataset,
        edited("data/manifest.json", lambda content: b"\xff" + content),
    ),
    _row(
        "NaN in it",
        r"holds no valid JSON \(.*not JSON compliant.*\)",
        dataset,
        edited(
            "data/manifest.json", lambda content: content.replace(b'"number": 3', b'"number": NaN')
        ),
    ),
    _row(
        "nested too deep",
        r"holds no valid JSON \(its lists and objects are nested 65 deep\)",
        dataset,
        edited("data/manifest.json", lambda _: b"[" * 65 + b"]" * 65),
    ),
    _row(
        "not there",
        r"data holds no dataset: it has no manifest\.json\. Give the folder that a pipeline wrote"
        r" \(its --output\), or run one: python -m pipelines\.wudao --output DIR$",
        dataset,
        missing("data/manifest.json"),
    ),
    _row(
        "a build that is unfinished",
        r"data holds no dataset yet: a build in it is unfinished\. Run the same command again to"
        r" finish it\.$",
        dataset,
        missing("data/manifest.json"),
        holding("data/.work/map/a.json"),
    ),
    _row(
        "no folder",
        r"data does not exist: give a dataset's folder \(--output of a pipeline\)\.$",
    ),
    _row(
        "a folder that leads out of the dataset",
        r"data/removals leads by a link to .*/away, not in .*/data: nothing outside of a dataset's"
        r" folder is read or written as part of it\. Replace the link by what it stands for \(cp"
        r" -rL\)\.$",
        dataset,
        led_out("data/removals"),
    ),
    _row(
        "a file that leads out of the dataset",
        r"data/vocabulary-\w{8}\.arrow leads by a link to .*/away, not in",
        dataset,
        led_out("data/vocabulary-*.arrow"),
    ),
)
