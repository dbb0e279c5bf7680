"""Formats the findings about an input, with the suggested command, for a terminal."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pipelines.corpus.guess import Guess
from pipelines.corpus.options import Options
from pipelines.look.file_head import FileHead
from pipelines.look.inspection import FileKind, Inspection
from pipelines.read.fields import Field
from pipelines.read.input_file import common_start
from pipelines.read.names import ending_of, matcher
from pipelines.report.columns import cut, table, width
from pipelines.report.formats import byte_size
from shards.commands.output import quantity, visible_line
from shards.commands.table import called
from shards.storage.address import is_url

COLUMNS = 96
"""The maximum width of lines that contain neither paths nor commands."""

MAX_FIELDS, MAX_KINDS, MAX_REFUSED = 24, 10, 5
_MIN_EXAMPLE = 20
_MIN_SHARE = 0.005
_RARE = 0.02
"""The share of texts below which the suggested command leaves a language out."""

MAX_REJECTED: float = Options().max_reject_rate
"""The share of rejected records above which a run stops."""

_IF_ALL = "more than --max-reject-rate allows; --plan samples all files"
"""The end of remarks, since the beginnings of files cannot show whether a run would stop."""

FORMATS = {
    "json": "JSON array of objects",
    "jsonl": "JSON lines",
    "lines": "plain text, one document per line",
    "objects": "JSON objects that span several lines",
    "file": "a text",
    "parquet": "Parquet",
    "arrow": "Arrow",
}
WRAPPED = ' in {"KEY": […]}'


def page(seen: Inspection) -> Iterator[str]:
    """Yield the lines for the terminal."""
    return map(visible_line, _lines(seen))


def _lines(seen: Inspection) -> Iterator[str]:
    if seen.is_dataset:
        folder = shlex.quote(seen.path)
        yield f"{seen.path}: a dataset, whose texts are already tokens"
        yield f"next      {called('shards inspect')} {folder}"
        return
    size = byte_size(sum(kind.num_bytes for kind in seen.read_kinds))
    num_files = sum(kind.num_files for kind in seen.read_kinds)
    num_others = sum(kind.num_files for kind in seen.kinds) - num_files
    others = f"; {num_others:,} more that a run does not read" * (num_others > 0)
    yield f"{seen.path}: {quantity(num_files, 'file')}, {size}{others}"
    for part in (_kinds, _remarks, _faults, *((_fields, _sense) if seen.records else ()), _next):
        if lines := [*part(seen)]:
            yield from ("", *lines)


def _kinds(seen: Inspection) -> Iterator[str]:
    rows = [
        (
            kind.ending or "(no extension)",
            f"{kind.num_files:,}",
            byte_size(kind.num_bytes),
            _what(kind),
        )
        for kind in seen.kinds[:MAX_KINDS]
    ]
    yield from table(rows, left=(0, 3))
    rest = seen.kinds[MAX_KINDS:]
    if rest:
        files = sum(kind.num_files for kind in rest)
        yield f"and {len(rest)} more extensions: {quantity(files, 'file')}"


def _remarks(seen: Inspection) -> Iterator[str]:
    yield from (f"  {remark}" for remark in seen.remarks)


def _what(kind: FileKind) -> str:
    if kind.why_skipped:
        return kind.why_skipped
    forms = dict.fromkeys(
        FORMATS[head.form] + WRAPPED * head.wrapped for head in kind.heads if head.records
    )
    if not forms:
        return "cannot be read"
    return f"{'; '.join(forms)}: about {about(kind.records)} records"


def _faults(seen: Inspection) -> Iterator[str]:
    """Yield lines on the files and records that a run cannot read, and on whether these stop it."""
    faults = [fault for head in seen.heads for fault in _of_head(head)]
    faults += [f"{path} {why}" for path, why in [*seen.refused.items()][:MAX_REFUSED]]
    left = len(seen.refused) - MAX_REFUSED
    faults += [f"and {left:,} more files or folders"] * (left > 0)
    if not faults:
        return
    yield "cannot be read:"
    yield from (f"  {fault}" for fault in faults)
    if seen.refused:
        yield "empty files and files that cannot be opened stop a run without --skip-unreadable"
    if any(head.refusal for head in seen.heads):
        yield "files that cannot be read stop a run: fix them, or give a glob of the others"
    damaged = sum(head.damaged for head in seen.heads)
    if damaged > MAX_REJECTED * (damaged + sum(len(head.records) for head in seen.heads)):
        yield f"the damaged ones among these records are {_IF_ALL}"


def _of_head(head: FileHead) -> Iterator[str]:
    path = head.file.path
    if head.refusal:
        yield head.refusal + (f" It seems to be {head.hint}." if head.hint else "")
        yield from [f"{path}: {head.conversion}"] * bool(head.conversion)
        return
    yield from (f"{path}, {where}: {reason}" for where, reason in head.places)
    if head.damaged > len(head.places):
        yield f"{path}: {head.damaged} damaged places at its beginning"
    yield from (f"{path}: {remedy}" for remedy in (head.hint, head.conversion) if remedy)


def _fields(seen: Inspection) -> Iterator[str]:
    rows = [("field", "type", "in", "chars", "example")]
    for field in seen.fields[:MAX_FIELDS]:
        kinds = " or ".join(visible_line(kind) for kind in field.types[:2])
        chars = f"{field.chars:,.0f}" if field.chars else ""
        rows.append((_name(field, seen), kinds, f"{100 * field.present:.0f} %", chars, ""))
    lines = list(table(rows, left=(0, 1, 4)))
    room = max(_MIN_EXAMPLE, COLUMNS - max(map(width, lines[1:])) - 2)
    filled = [rows[0]] + [
        (*row[:4], example(field.example, room))
        for row, field in zip(rows[1:], seen.fields, strict=False)
    ]
    yield from table(filled, left=(0, 1, 4))
    if len(seen.fields) > MAX_FIELDS:
        yield f"and {len(seen.fields) - MAX_FIELDS} more fields"


def _name(field: Field, seen: Inspection) -> str:
    return f"{visible_line(field.name)}{' *' if field.name == seen.text_field else ''}"


def _sense(seen: Inspection) -> Iterator[str]:
    number, num_heads = len(seen.records), sum(head.form in seen.forms for head in seen.heads)
    yield f"read {quantity(number, 'record')} at the beginning of {quantity(num_heads, 'file')}"
    if seen.text_field:
        (share,) = (field.present for field in seen.fields if field.name == seen.text_field)
        where = "" if share == 1 else f", in {100 * share:.0f} % of these records"
        yield f"text      {seen.text_field} (*): has the most letters{where}"
    else:
        yield "text      no field looks like text"
    if seen.languages:
        yield f"language  {_shares(seen.languages)}"
    if seen.guesses:
        best, *others = seen.guesses
        yield f"corpus    {best.corpus}: {_reads(best)}"
        yield from _account(best)
        for other in others[:2]:
            yield f"          or {other.corpus}: {_reads(other)}"


def _reads(guess: Guess) -> str:
    uses = f"reads {guess.read} of {guess.tried}; text from {', '.join(guess.shaping)}"
    if guess.kept:
        uses += f"; keeps {', '.join(guess.kept)}"
    return cut(visible_line(uses), COLUMNS - 16)


def _account(guess: Guess) -> Iterator[str]:
    if guess.dropped:
        yield f"          it drops {_counts(guess.dropped)}"
    if guess.rejected:
        many = sum(guess.rejected.values()) > MAX_REJECTED * guess.tried
        yield f"          it quarantines {_counts(guess.rejected)}{':' * many}"
        if many:
            yield f"          of these records {_IF_ALL}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {reason}" for reason, number in counts.items())


def _shares(shares: Mapping[str, float]) -> str:
    shown = [f"{name} {100 * share:.0f} %" for name, share in shares.items()]
    rest = [share for share in shares.values() if share < _MIN_SHARE]
    return ", ".join(shown[: max(1, min(6, len(shown) - len(rest)))])


def _next(seen: Inspection) -> Iterator[str]:
    if not seen.guesses:
        yield ("next      no corpus reads these records; docs/own.md shows how to write one")
    else:
        line = command(seen, seen.guesses[0])
        if others := [
            kind for kind in seen.read_kinds if kind.form and kind.form not in seen.forms
        ]:
            endings = ", ".join(kind.ending or "no extension" for kind in others)
            files = quantity(sum(kind.num_files for kind in others), "file")
            yield f"left out  {files} ({endings}) with other records, which need another command"
        yield "next      estimate the run, then run it (with a small tokenizer, for a try):"
        yield f"  {line} --plan"
        yield f"  {line}"


def about(number: float) -> str:
    """Return a number rounded to two significant digits, for example 2,700."""
    digits = max(0, len(str(int(number))) - 2)
    return f"{round(number / 10**digits) * 10**digits:,}"


def example(text: str, room: int) -> str:
    """Return a text on one line, cut to a width, for use in a table."""
    return cut(visible_line(" ".join(text[: 8 * room].split())), room)


def command(seen: Inspection, guess: Guess) -> str:
    """Return the command line that makes a dataset from an input with the options of a guess."""
    words = ["--input", *_inputs(seen, guess)]
    words += _own_flags(seen, guess)
    words += _language_flags(seen, guess)
    words += ["--skip-unreadable"] if seen.refused else []
    words += ["--tokenizer", _tokenizer(guess)]
    return f"{called(guess.corpus.replace('_', '-'))} {shlex.join(words)}"


def _own_flags(seen: Inspection, guess: Guess) -> Iterator[str]:
    field = getattr(guess.options, "text_field", "text")
    if seen.forms != ("lines",) and field != "text":
        yield from ("--text-field", field)


def _language_flags(seen: Inspection, guess: Guess) -> Sequence[str]:
    """Return the flag that keeps the frequent languages, if the corpus would drop one of them."""
    frequent = [name for name, share in seen.languages.items() if share >= _RARE]
    if not set(frequent) - {*guess.options.languages} or "all" in guess.options.languages:
        return ()
    return ("--languages", ",".join(sorted({*frequent} - {"und"}) or ["all"]))


def _inputs(seen: Inspection, guess: Guess) -> list[str]:
    """Return the paths, or globs if the corpus would not read exactly the chosen files."""
    patterns = guess.spec.pattern
    is_read = matcher((patterns,) if isinstance(patterns, str) else patterns)
    alone = all(kind.form in seen.forms for kind in seen.read_kinds)
    fits = alone and all(is_read(file.relative) for file in seen.files)
    if fits or len(seen.paths) > 1 or not _below(seen):
        return [*seen.paths]
    kinds: dict[str, list[str]] = {}
    for file in seen.files:
        kinds.setdefault(ending_of(file.relative), []).append(file.relative)
    return [f"{seen.path.rstrip('/')}/{_glob(ending, names)}" for ending, names in kinds.items()]


def _glob(ending: str, relatives: Sequence[str]) -> str:
    """Return a glob for files that have an extension, or whose names have a common beginning."""
    deep = "**/" * any("/" in relative for relative in relatives)
    names = [relative.rpartition("/")[2] for relative in relatives]
    start = "" if ending else common_start(names).rstrip("0123456789")
    return f"{deep}{start}*{ending}" if len(names) > 1 or ending else names[0]


def _below(seen: Inspection) -> bool:
    """Return whether the path is the folder of the files, not a file, glob or hub dataset."""
    start = seen.path if is_url(seen.path) else os.path.abspath(seen.path)  # noqa: PTH100 - as files have it
    return all(file.path == f"{start.rstrip('/')}/{file.relative}" for file in seen.files)


def _tokenizer(guess: Guess) -> str:
    kind, _, path = guess.spec.sample_tokenizer.partition(":")
    here = Path.cwd()
    return f"{kind}:{Path(path).relative_to(here) if Path(path).is_relative_to(here) else path}"
