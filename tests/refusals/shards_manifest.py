"""Manifests in which something is wrong, each with the sha256 that belongs to it unless said."""

from collections.abc import Sequence
from typing import Any

from tests.refusals.refusal import Accepted, Refusal
from tests.refusals.scenes import Scene, together
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
_SOURCE = f"{_GENERATION}.sources.docs"
_SHARD = f"{_SOURCE}.shards.0"
_AUDIT = f"{_GENERATION}.audit.0"

_FIELDS: Sequence[tuple[str, Any, str]] = (
    # Whether it is there, and of which type.
    ("number", GONE, r"manifest\.number is missing"),
    ("lineage", GONE, r"manifest\.lineage is missing"),
    ("corpus", GONE, r"manifest\.corpus is missing"),
    ("options", GONE, r"manifest\.options is missing"),
    ("tokenizer", GONE, r"manifest\.tokenizer is missing"),
    ("vocabulary", GONE, r"manifest\.vocabulary is missing"),
    ("libraries", GONE, r"manifest\.libraries is missing"),
    ("generations", GONE, r"manifest\.generations is missing"),
    ("colour", "red", r"manifest\.colour is not known"),
    ("number", "3", r"manifest\.number is '3', not of type int"),
    ("number", True, r"manifest\.number is True, not of type int"),
    ("number", 3.0, r"manifest\.number is 3\.0, not of type int"),
    ("lineage", 5, r"manifest\.lineage is 5, not of type str"),
    ("corpus", None, r"manifest\.corpus is None, not of type str"),
    ("options", [], r"manifest\.options is \[\], not of type dict"),
    ("libraries", {"numpy": 2}, r"manifest\.libraries\.numpy is 2, not of type str"),
    ("generations", {}, r"manifest\.generations is \{\}, not of type list"),
    ("generations", [], r"manifest\.generations is empty"),
    ("removals", {}, r"manifest\.removals is \{\}, not of type list"),
    ("corpus", ["x" * 200], r"manifest\.corpus is \['x{98}…, not of type str"),
    # Numbers of manifests.
    ("number", -1, r"number: this number is below 0, or larger than any"),
    ("number", 2**48 + 1, r"number: this number is below 0, or larger than any"),
    ("number", 10**40, r"number: this number is below 0, or larger than any"),
    ("number", 1, r"a number is 2, manifest\.number 1"),
    ("number", 2, r"a number is 3, manifest\.number 2"),
    (f"{_GENERATION}.number", 0, r"a number is 0, manifest\.number 3"),
    (f"{_GENERATION}.number", 4, r"a number is 4, manifest\.number 3"),
    ("removals.0.number", 4, r"a number is 4, manifest\.number 3"),
    ("removals.0.number", 0, r"a number is 0, manifest\.number 3"),
    ("removals.0.reason", 7, r"manifest\.removals\[0\]\.reason is 7, not of type str"),
    # The tokenizer.
    (
        "tokenizer.pieces",
        0,
        r"manifest\.tokenizer: 0 pieces, 384 ids of type 'uint16' and the special ones",
    ),
    (
        "tokenizer.pieces",
        385,
        r"tokenizer: 385 pieces, 384 ids of type 'uint16' and .*: tokens are",
    ),
    ("tokenizer.vocabulary_size", 299, r"300 pieces, 299 ids of type 'uint16'"),
    ("tokenizer.vocabulary_size", 65537, r"300 pieces, 65537 ids of type 'uint16'"),
    ("tokenizer.dtype", "int64", r"ids of type 'int64' and .*: tokens are uint16 or int32"),
    ("tokenizer.dtype", "uint32", r"ids of type 'uint32' and .*: tokens are uint16 or int32"),
    ("tokenizer.special.mask", 384, r"manifest\.tokenizer: .*'mask': 384.*all ids below the size"),
    ("tokenizer.special.mask", -1, r"manifest\.tokenizer: .*'mask': -1.*all ids below the size"),
    ("tokenizer.special.mask", "x", r"tokenizer\.special\.mask is 'x', not of type int"),
    ("tokenizer.special.eos", GONE, r"manifest\.tokenizer: .* and eos ends every document"),
    ("tokenizer.name", GONE, r"manifest\.tokenizer\.name is missing"),
    # Options that compaction goes by.
    ("options.shards", -1, r"manifest\.options\.shards is -1, none that a run has"),
    ("options.shards", 2**20 + 1, r"options\.shards is 1048577, none that a run has"),
    ("options.shards", True, r"manifest\.options\.shards is True, none that a run has"),
    ("options.shards", "4", r"manifest\.options\.shards is '4', none that a run has"),
    ("options.shard_tokens", 2**48 + 1, r"shard_tokens is 281474976710657, none that a run has"),
    ("options.shard_tokens", -1, r"shard_tokens is -1, none that a run has"),
    ("options.split_bytes", 2**63 + 1, r"split_bytes is 9223372036854775809, none that a run"),
    ("options.split_bytes", 1.5, r"manifest\.options\.split_bytes is 1\.5, none that a run has"),
    # Generations: names of folders, inputs, shards, tables.
    (f"{_GENERATION}.name", "../x", r"'\.\./x' is no path below a folder"),
    (f"{_GENERATION}.name", "a/b", r"'a/b' is no name of a file or folder"),
    (f"{_GENERATION}.name", "", r"'' is no path below a folder"),
    (f"{_GENERATION}.sources", {"a/b": {"shards": [], "validation": []}}, r"'a/b' is no name of"),
    (f"{_GENERATION}.sources", {"docs": {"shards": []}}, r"sources\.docs\.validation is missing"),
    (f"{_GENERATION}.inputs.0.bytes", -1, r"bytes: this number is below 0, or larger than any"),
    (
        f"{_GENERATION}.inputs.0.crc32c",
        [2**49],
        r"crc32c\[0\]: this number is below 0, or larger than any",
    ),
    (f"{_GENERATION}.inputs.0.crc32c", 5, r"inputs\[0\]\.crc32c is 5, not of type list"),
    (
        f"{_SHARD}.path",
        "/etc/passwd",
        r"shards\[0\]\.path: '/etc/passwd' is no path below a folder",
    ),
    (f"{_SHARD}.path", "a/../b", r"sources\.docs\.shards\[0\]\.path: 'a/\.\./b' is no path below"),
    (
        f"{_SHARD}.path",
        "a//b",
        r"sources\.docs\.shards\[0\]\.path: 'a//b' is no path below a folder",
    ),
    (
        f"{_SHARD}.path",
        "./a",
        r"sources\.docs\.shards\[0\]\.path: '\./a' is no path below a folder",
    ),
    (
        f"{_SHARD}.path",
        "a\nb",
        r"sources\.docs\.shards\[0\]\.path: 'a\\nb' is no path below a folder",
    ),
    (f"{_SHARD}.path", "x" * 5000, r"shards\[0\]\.path: 'x{200}' is no path below a folder"),
    (f"{_SHARD}.documents", -1, r"documents: this number is below 0, or larger than any"),
    (f"{_SHARD}.documents", 2**48 + 1, r"documents: this number is below 0, or larger than any"),
    (f"{_SHARD}.tokens", -5, r"tokens: this number is below 0, or larger than any"),
    (f"{_SHARD}.tokens", 2**60, r"tokens: this number is below 0, or larger than any"),
    (
        f"{_SHARD}.tokens",
        GONE,
        r"manifest\.generations\[0\]\.sources\.docs\.shards\[0\]\.tokens is",
    ),
    (f"{_SHARD}.files.bin.bytes", -1, r"bytes: this number is below 0, or larger than any"),
    (f"{_SHARD}.files.bin.bytes", 2**48 + 1, r"bytes: this number is below 0, or larger than any"),
    (f"{_SHARD}.files.bin.crc32c", -1, r"crc32c: this number is below 0, or larger than any"),
    (f"{_SHARD}.files.idx", GONE, r"shards\[0\]\.files: these are \['arrow', 'bin'\], not \("),
    (
        f"{_SHARD}.files.txt",
        {"bytes": 1, "crc32c": 1},
        r"these are \['arrow', 'bin', 'idx', 'txt'\]",
    ),
    (
        f"{_SOURCE}.validation.0.files.bin",
        GONE,
        r"validation\[0\]\.files: these are \['arrow', 'id",
    ),
    (f"{_AUDIT}.rows", -1, r"rows: this number is below 0, or larger than any"),
    (
        f"{_AUDIT}.path",
        "..",
        r"manifest\.generations\[0\]\.audit\[0\]\.path: '\.\.' is no path below",
    ),
    (f"{_AUDIT}.bytes", GONE, r"manifest\.generations\[0\]\.audit\[0\]\.bytes is missing"),
    (
        "generations.1.signatures.0.rows",
        -1,
        r"generations\[1\]\.signatures\[0\]\.rows: this number is below 0",
    ),
    ("vocabulary.path", "/x", r"manifest\.vocabulary\.path: '/x' is no path below a folder"),
    ("vocabulary.rows", -2, r"rows: this number is below 0, or larger than any"),
    ("vocabulary.bytes", 2**48 + 1, r"bytes: this number is below 0, or larger than any"),
    ("removals.0.documents.rows", -1, r"rows: this number is below 0, or larger than any"),
    # The account.
    (f"{_GENERATION}.accounting.docs", 5, r"accounting\.docs is 5, not of type dict"),
    (f"{_GENERATION}.accounting.docs", {}, r"manifest\.accounting\.docs\.dropped is missing"),
    (f"{_GENERATION}.accounting.docs.read", "9", r"accounting\.docs\.read is '9', not of type int"),
    (f"{_GENERATION}.accounting.docs.read", -1, r"docs\.counts\.read: this number is below 0"),
    (f"{_GENERATION}.accounting.docs.odd", "x", r"docs\.counts\.odd is 'x', not of type int"),
    (f"{_GENERATION}.accounting.docs.odd", True, r"docs\.counts\.odd is True, not of type int"),
    (f"{_GENERATION}.accounting.docs.odd", {"a": -1}, r"docs\.counts\.a: this number is below 0"),
    (
        f"{_GENERATION}.accounting.docs.odd",
        {"a": None},
        r"docs\.counts\.a is None, not of type int",
    ),
)
"""Place, value, and what is said of it."""

_TAKEN: Sequence[tuple[str, Any]] = (
    ("number", 2**48),
    ("tokenizer.pieces", 384),
    ("tokenizer.pieces", 1),
    ("tokenizer.vocabulary_size", 65536),
    ("tokenizer.vocabulary_size", 311),
    ("tokenizer.special.mask", 383),
    ("tokenizer.special.mask", 0),
    ("options.shards", 2**20),
    ("options.shards", None),
    ("options.shards", 0),
    ("options.shard_tokens", 2**48),
    ("options.split_bytes", 2**63),
    (f"{_GENERATION}.inputs.0.bytes", 0),
    (f"{_GENERATION}.inputs.0.bytes", 2**48),
    (f"{_GENERATION}.inputs.0.crc32c", []),
    (f"{_AUDIT}.rows", 0),
    (f"{_AUDIT}.rows", 2**48),
    (f"{_GENERATION}.accounting.docs.odd", 2**48),
    ("removals", GONE),
    ("removals.0.number", 1),
)
"""At the bounds: what is not refused by whoever opens it."""


def _shown(value: Any) -> str:
    return "without" if value is GONE else f"= {value!r:.40}"


ROWS = (
    *(
        _row(f"{place} {_shown(value)}", says + r".*" + _AGAIN, manifest, sealed(place, value))
        for place, value, says in _FIELDS
    ),
    *(
        Accepted(
            name=f"manifest: {place} {_shown(value)}, which is taken",
            command="shards inspect data",
            scene=together(dataset, sealed(place, value)),
            says="data: text, manifest",
        )
        for place, value in _TAKEN
    ),
    _row(
        "edited without its sha256",
        r"data/manifest\.json was changed after it was written \(its sha256 does not match\): "
        r"restore it from a copy, or build the dataset again\.$",
        dataset,
        json_changed("data/manifest.json", "corpus", "wudao"),
    ),
    _row(
        "no sha256",
        r"its sha256 does not match",
        dataset,
        json_changed("data/manifest.json", "sha256", GONE),
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
        r"data/manifest\.json was written by a newer corpusmill \(manifest version 2; this one "
        r"reads version 1\): upgrade corpusmill\.$",
        dataset,
        sealed("version", 2),
    ),
    _row(
        "no version", r"\(manifest version None; this one reads", dataset, sealed("version", GONE)
    ),
    _row(
        "cut short",
        r"data/manifest\.json holds no valid JSON \(.*\): it was changed after it was written\. "
        r"Restore it from a copy, or delete it and rerun the command that made it\.$",
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
        "infinite numbers",
        r"holds no valid JSON \(.*not JSON compliant.*\)",
        dataset,
        edited(
            "data/manifest.json",
            lambda content: content.replace(b'"number": 3', b'"number": 1e999'),
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
        r"data holds no dataset: it has no manifest\.json\. Give the folder that a pipeline wrote "
        r"\(its --output\), or run one: python -m pipelines\.wudao --output DIR$",
        dataset,
        missing("data/manifest.json"),
    ),
    _row(
        "a build that is unfinished",
        r"data holds no dataset yet: a build in it is unfinished\. Run the same command again to "
        r"finish it\.$",
        dataset,
        missing("data/manifest.json"),
        lambda folder: (folder / "data/.work").mkdir(),
    ),
    _row(
        "no folder",
        r"data does not exist: give a dataset's folder \(--output of a pipeline\)\.$",
    ),
    _row(
        "a folder that leads out of the dataset",
        r"data/removals leads by a link to .*/away, not in .*/data: nothing outside of a "
        r"dataset's folder is read or written as part of it\. Replace the link by what it stands "
        r"for \(cp -rL\)\.$",
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
