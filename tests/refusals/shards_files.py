"""Files of a dataset that are cut off, changed or missing."""

from dataclasses import replace

import pyarrow as pa

from tests.refusals.refusal import Accepted, Refusal
from tests.refusals.setups import Setup, all_of
from tests.refusals.setups_shards import (
    cell_changed,
    cut,
    dataset,
    first,
    missing,
    overwritten,
    rows_changed,
    with_checksum,
    with_json,
    with_manifest,
)

_SHOW = "shards inspect data --doc 0 --source notes"
_TRACE = (
    "shards trace --data data:notes --objective causal --length 64 --batch-size 400 --steps 1"
    " --step 0"
)
_SHARD = "data/g0001-*/notes/00000"
_BIN, _IDX, _ARROW = (f"{_SHARD}.{suffix}" for suffix in ("bin", "idx", "arrow"))
_ENTRY = "generations.0.sources.notes.shards.0"
_VOCABULARY = "data/vocabulary-*.arrow"
_FEWER = rows_changed(_VOCABULARY, lambda table: table.slice(1))
_ENDLESS = with_checksum(_BIN, lambda content: content[:-2] + b"\x05\0")
"""A setup in which the last document has no end token."""
_SHORT = with_checksum(_IDX, lambda content: content[:33])
_LONGER = with_checksum(_IDX, lambda content: content + b"\0")
_LATER = cell_changed(_ARROW, "offset", 1, lambda offset: offset + 1)
_EARLIER = cell_changed("data/g0001-*/notes/00001.arrow", "order", 0, 5)
_TORN = cell_changed("data/g0001-*/notes/00001.arrow", "offset", 4, lambda offset: offset + 1)
_REMOVED = with_manifest("removals.0.documents.rows", 2)


def _row(name: str, *setups: Setup, command: str = _SHOW) -> Refusal:
    return Refusal(name=f"files: {name}", command=command, setup=all_of(dataset, *setups))


def _index(at: int, value: bytes) -> Setup:
    """Return a setup that changes bytes of an index at an offset."""
    return with_checksum(_IDX, lambda content: content[:at] + value + content[at + len(value) :])


def _begun_with(token: int) -> Setup:
    """Return a setup that changes the first token of a shard."""
    return with_checksum(_BIN, lambda content: token.to_bytes(2, "little") + content[2:])


def _column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


def _twice(table: pa.Table) -> pa.Table:
    return table.append_column("order", table["order"])


def _prompted(but: int) -> Setup:
    """Return a setup that makes a prompt of the first document except its last `but` tokens."""

    def change(table: pa.Table) -> pa.Table:
        prompts = [table["tokens"][0].as_py() - but, *table["prompt_tokens"].to_pylist()[1:]]
        return _column(table, "prompt_tokens", pa.array(prompts, pa.int32()))

    return rows_changed(_ARROW, change)


_SHOWN = (
    _row("bin cut short", cut(_BIN)),
    _row("bin lost", missing(_BIN)),
    _row(
        "one token too many in the manifest",
        with_manifest(f"{_ENTRY}.tokens", lambda tokens: tokens + 1),
    ),
    _row(
        "one document too few in the manifest",
        with_manifest(f"{_ENTRY}.documents", lambda documents: documents - 1),
    ),
    _row("arrow with two columns of one name", rows_changed(_ARROW, _twice)),
    _row("arrow in two batches", rows_changed(_ARROW, lambda table: table, batches=2)),
    _row(
        "arrow without a column",
        rows_changed(_ARROW, lambda table: table.drop_columns(["prompt_tokens"])),
    ),
    _row(
        "arrow with a null",
        rows_changed(
            _ARROW,
            lambda table: _column(
                table, "order", pa.array([None, *table["order"].to_pylist()[1:]], pa.uint64())
            ),
        ),
    ),
    _row("document that begins elsewhere", cell_changed(_ARROW, "offset", 0, 1)),
    _row(
        "document longer than it is",
        cell_changed(_ARROW, "tokens", 0, lambda tokens: tokens + 1),
    ),
)

_VOCABULARIES = (
    _row("vocabulary with another byte", overwritten(_VOCABULARY, 1000, b"\xfe")),
    _row(
        "vocabulary without a column",
        rows_changed(_VOCABULARY, lambda table: table.drop_columns(["sentence_end"])),
    ),
    _row("vocabulary of fewer tokens", _FEWER, command=_TRACE),
    replace(_row("trace of torn documents", _TORN, command=_TRACE), output_before="^position 0"),
    _row("token beyond the vocabulary", overwritten(_BIN, 0, b"\x80\x01")),
)

_REMOVAL = "data/removals/00003-*.arrow"
_REMOVALS = (
    _row("removal of another shard", cell_changed(_REMOVAL, "shard", 0, 2)),
    _row("removal of a row before the first", cell_changed(_REMOVAL, "row", 0, -1)),
    _row("removal of a row after the last", cell_changed(_REMOVAL, "row", 0, 10_000)),
    _row(
        "removal without a column",
        rows_changed(_REMOVAL, lambda table: table.drop_columns(["row"])),
    ),
)

_OF_PROMPTS = r"00000\.arrow has a prompt that is negative or not shorter than its document"
_OF_POINTERS = r"00000\.idx has pointers that do not follow from its lengths"
_FOUND = (
    ("bin lost", r"notes/00000\.bin is missing \([\d,]+ bytes expected\)", missing(_BIN)),
    (
        "another byte",
        r"00000\.bin has crc32c (\w{8}), (?!\1)\w{8} expected \d+ files, .* MB/s: 1 problem$",
        overwritten(_BIN, 4, b"\x03\x01"),
    ),
    ("idx without a header", r"idx has 33 bytes; its header alone takes 34", _SHORT),
    ("idx of another kind", r"idx begins with b'XMIDIDX\\x00\\x00' version 1", _index(0, b"X")),
    ("idx of another type", r"\.idx has token type 5, \d+ ends of \d+ doc", _index(17, b"\x05")),
    ("idx of int32", _OF_POINTERS, _index(17, b"\x04")),
    ("idx with too many ends", r"\.idx has token type 8, 200 ends of \d+ d", _index(26, b"\xc8")),
    ("idx with bytes left over", r"idx has (\d+) bytes, not (?!\1)\d+: it is damaged", _LONGER),
    ("idx with other lengths", _OF_POINTERS, _index(34, b"\x02")),
    (
        "arrow with other lengths",
        r"idx has lengths that differ from those in .*arrow has offsets that do not follow",
        cell_changed(_ARROW, "tokens", 0, lambda tokens: tokens - 1),
    ),
    ("offsets that do not follow", r"00000\.arrow has offsets that do not follow", _LATER),
    ("a prompt below 0", _OF_PROMPTS, cell_changed(_ARROW, "prompt_tokens", 0, -1)),
    ("a prompt as long as its document", _OF_PROMPTS, _prompted(0)),
    (
        "documents out of order",
        r"00000\.arrow is not sorted by order",
        cell_changed(_ARROW, "order", 1, 0),
    ),
    (
        "the range of another shard",
        r"another shard's range",
        cell_changed(_ARROW, "order", -1, 2**63),
    ),
    ("a shard that begins too early", r"00001\.arrow begins before the end of the", _EARLIER),
    (
        "a document without its end",
        r"eos \(300\) is not the last token of 1 document, the first \d+",
        _ENDLESS,
    ),
    (
        "a token beyond the vocabulary",
        r"00000\.bin contains token ids \d+ to 384",
        _begun_with(384),
    ),
    ("a vocabulary of fewer tokens", r"-\w{8}\.arrow has 383 rows, 384 expected", _FEWER),
    ("a removal of fewer documents", r"removes 1 document, the manifest says 2", _REMOVED),
)
"""The problems that `verify` finds, with exit code 1: row name, output and setup."""

_SOUND = {
    "nothing is wrong": dataset,
    "the last token of the vocabulary": all_of(dataset, _begun_with(383)),
    "a prompt one token shorter than its document": all_of(dataset, _prompted(1)),
}


def _verified(name: str, message: str, setup: Setup, *, code: int) -> Accepted:
    return Accepted(
        name=f"verify: {name}",
        command="shards verify data",
        code=code,
        message=message,
        setup=setup,
        may_write=(),
    )


_VERIFIED = (
    *(_verified(name, message, all_of(dataset, setup), code=1) for name, message, setup in _FOUND),
    *(
        _verified(name, r"^(\d+) files, [\d,]+ bytes, [\d,]+ MB/s: ok$", setup, code=0)
        for name, setup in _SOUND.items()
    ),
)


def _damage(command: str, name: str, *setups: Setup, output_before: str = "") -> Refusal:
    return Refusal(
        name=f"{command.split()[1]}: {name}",
        command=command,
        output_before=output_before,
        setup=all_of(first, *setups),
        may_write=("out*", "disk*", "data/.lock"),
    )


_EXPORT = "shards export data --to numpy --output out"
_PLACE = "shards place data --to disk"
_NODE = r"^node 0 of 1: the whole corpus"
_COMPACT = "shards compact data"
_EXPORTED = {
    "another byte in a bin": overwritten("data/g0001-*/docs/00000.bin", 4, b"\x03\x01"),
    "a document that does not end": _ENDLESS,
    "documents that are too long": cell_changed(_ARROW, "tokens", 0, lambda tokens: tokens + 1),
    "a document outside of its shard": cell_changed(_ARROW, "offset", 1, 10**6),
}
_DONE = (
    *(
        _damage(_EXPORT, name, setup, output_before="validation")
        for name, setup in _EXPORTED.items()
    ),
    _damage(
        _PLACE,
        "another byte",
        overwritten("data/g0001-*/notes/00001.bin", 4, b"\x03\x01"),
        output_before=_NODE,
    ),
    Refusal(
        name="compact: another byte",
        command=_COMPACT,
        output_before=r"bytes are checked first$",
        setup=all_of(dataset, overwritten("data/g0001-*/notes/00001.bin", 4, b"\x03\x01")),
        may_write=("data/.work*", "data/.lock"),
    ),
    *(
        Refusal(
            name=f"verify: a mark of a share that is none: {mark!r:.40}",
            command="shards verify data",
            setup=all_of(dataset, with_json("data/.placed", mark)),
        )
        for mark in (
            {"scatters": [2], "num_scatters": 2},
            {"scatters": [], "num_scatters": 0},
            [],
        )
    ),
    Refusal(
        name="megatron: a shard lost",
        command="shards megatron data",
        setup=all_of(first, missing("data/g0001-*/notes/00001.bin")),
    ),
)

ROWS = (*_SHOWN, *_VOCABULARIES, *_REMOVALS, *_VERIFIED, *_DONE)
