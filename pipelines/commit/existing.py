"""Compares a run with the finished dataset that an earlier run left in its output."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.corpus.code import CORPUS_CODE, USER_CODE
from pipelines.process.resume import unchanged
from pipelines.quality.selection import EVERY_LANGUAGE
from pipelines.read.files import InputFile
from pipelines.read.formats import splits, stored_crc32c
from pipelines.read.input_format import InputFormat
from pipelines.read.listing import Listing
from shards.commands.flags import flag_of
from shards.errors import DamageError, UserError
from shards.manifest import NAME, InputEntry, Manifest, TokenizerEntry, distinct_labels
from shards.records import from_json
from shards.storage.files import json_errors_explained, read_json
from shards.storage.files import list_files as files_in
from shards.storage.remote import AnyPath

REPLACE = "Choose another --output, or give --overwrite to replace it"
"""The advice to the user if the output contains a different dataset."""

INPUTS = "inputs.json"
"""The file that lists a dataset's input files with their times; it is not part of the dataset."""


@dataclass(frozen=True, kw_only=True)
class OptionFiles:
    """The files whose fingerprints are the values of options, for a run and for a dataset."""

    tokenizers: tuple[TokenizerEntry, TokenizerEntry]
    """The tokenizer of the run and the tokenizer of the dataset."""
    given: tuple[Mapping[str, Any], Mapping[str, Any]]
    """The options as given to the run, and the dataset's options as far as report.json has them."""

    def shown(self, name: str, now: Any, before: Any) -> tuple[str, str]:
        """Return an option's value in the run and in the dataset, with names for fingerprints."""
        if name == "tokenizer":
            one, other = ((each.label, each.sha256) for each in self.tokenizers)
            return distinct_labels(one, other)
        ours, theirs = (given.get(name) for given in self.given)
        if ours is None or theirs is None or ours == theirs:
            return _both_shown(name, now, before)
        return _shown(ours, none="the default"), _shown(theirs, none="the default")


def check_options(
    manifest: Manifest,
    options: Mapping[str, Any],
    *,
    output: AnyPath,
    advice: str,
    files: OptionFiles | None = None,
) -> None:
    """Check that a dataset was made with these semantic options.

    Args:
        manifest: The manifest of the dataset.
        options: The semantic options of the run.
        output: The folder of the dataset.
        advice: Advice for the user if options differ.
        files: The files whose fingerprints are the values of options.

    Raises:
        UserError: Some options differ; the message names them.
    """
    names = sorted({*options, *manifest.options})
    differing = [name for name in names if options.get(name) != manifest.options.get(name)]
    if not differing:
        return
    edited = _edited(manifest.options, options, differing)
    if "threshold" in differing and "quality" in differing:
        profiles = [made.get("quality", {}).get("profiles") for made in (options, manifest.options)]
        if profiles[0] == profiles[1]:  # --threshold names the bounds that differ
            differing.remove("quality")
    shown = files.shown if files else _both_shown
    odd = [
        "{} is {}, the dataset has {}".format(
            flag_of(name), *shown(name, options.get(name), manifest.options.get(name))
        )
        for name in differing
        if name != CORPUS_CODE and name not in edited
    ]
    odd += [f"the code of {what} was edited since then" for what in edited.values()]
    if CORPUS_CODE in differing:
        changed = (
            "was edited since then" if CORPUS_CODE in manifest.options else "was not recorded then"
        )
        odd.append(
            f"the code of the corpus {manifest.corpus!r} (its module and your modules that it "
            f"imports) {changed}"
        )
    raise UserError(f"{output} holds a dataset made with other options: {'; '.join(odd)}. {advice}")


def _edited(
    before: Mapping[str, Any], now: Mapping[str, Any], names: Sequence[str]
) -> dict[str, str]:
    """Return the options that differ only in custom code, each with the name of that code."""
    found: dict[str, str] = {}
    for name in names:
        if isinstance(before.get(name), dict) and isinstance(now.get(name), dict):
            old, new = _without_code(before[name]), _without_code(now[name])
            if old == new:
                whose = {key for key in now[name] if now[name][key] != before[name].get(key)}
                found[name] = _whose(name, now[name], whose)
    return found


def _without_code(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        key: _without_code(inner)
        for key, inner in value.items()
        if key not in (CORPUS_CODE, USER_CODE)
    }


def _whose(name: str, value: Mapping[str, Any], changed: set[str]) -> str:
    if name == "corpora":
        return f"the corpus of {', '.join(map(repr, sorted(changed)))}"
    return f"{flag_of(name)} ({', '.join(sorted(value.get(USER_CODE) or changed))})"


def check_corpus(manifest: Manifest, corpus: str, *, output: AnyPath, advice: str) -> None:
    """Check that a dataset was made by the command of a corpus; arguments are as in check_options.

    Raises:
        UserError: A different command made the dataset.
    """
    if manifest.corpus != corpus:
        raise UserError(
            f"{output} holds a dataset of pipelines.{manifest.corpus}, not of pipelines.{corpus}. "
            f"{advice}"
        )


def check_inputs(
    manifest: Manifest,
    listing: Listing,
    *,
    input_formats: Mapping[str, InputFormat],
    output: AnyPath,
) -> None:
    """Check by name, size, time and, if needed, crc32c that a dataset was made from these files.

    Raises:
        UserError: The files differ; the message names the first such file.
    """
    changes = find_changes(
        manifest, listing, input_formats=input_formats, output=output, rehash=None
    )
    states = {
        **dict.fromkeys(changes.new, "is new"),
        **dict.fromkeys(changes.changed, "has changed"),
    }
    named = {"/".join(file.name): state for file, state in states.items()}
    named |= dict.fromkeys(changes.gone, "is gone")
    if named:
        first = min(named)
        raise UserError(
            f"{output} holds a dataset of other input: {first} {named[first]} "
            f"({len(named)} files differ). Give --append to add the new files, or: {REPLACE}"
        )


@dataclass(frozen=True, kw_only=True)
class InputChanges:
    """The differences between an input and the files that a dataset was made from."""

    new: Sequence[InputFile]
    """Files that the dataset was not made from."""
    changed: Mapping[InputFile, str]
    """Files that have changed since the dataset was made, each with a description of the change."""
    gone: Sequence[str]
    """Files that are missing from the input, as SOURCE/PATH."""


def find_changes(
    manifest: Manifest,
    listing: Listing,
    *,
    input_formats: Mapping[str, InputFormat],
    output: AnyPath,
    rehash: bool | None,
) -> InputChanges:
    """Return the differences between an input and the files that a dataset was made from.

    A file counts as unchanged if its name, its size, and its time or etag are the same; if its old
    time is unknown, its content is compared.

    Args:
        manifest: The manifest of the dataset.
        listing: The current input. A file that cannot be read now does not count as missing.
        input_formats: The input format of each source.
        output: The folder of the dataset.
        rehash: Whether to compare the content of every file; None compares only the files whose
            times have changed.
    """
    before = _by_name(manifest)
    now = {file.name: file for file in listing.files}
    times = _times(manifest, output)
    with json_errors_explained(output / NAME, "build the dataset again"):
        size = int(manifest.options["split_bytes"])

    def change(key: tuple[str, str]) -> str:
        file, entry = now[key], before[key]
        if file.bytes != entry.bytes:
            return f"has {file.bytes:,} bytes and had {entry.bytes:,}"
        if not rehash and unchanged(file, times.get(key)):
            return ""
        if rehash is False and key in times:
            return "has another time (--rehash compares the content)"
        crc32c = file_crc32c(file, entry, input_format=input_formats[file.source], split_bytes=size)
        return "" if crc32c == entry.crc32c else "has other content"

    changes = {now[key]: change(key) for key in sorted(before.keys() & now.keys())}
    return InputChanges(
        new=[now[key] for key in sorted(now.keys() - before.keys())],
        changed={file: text for file, text in changes.items() if text},
        gone=["/".join(key) for key in sorted(before) if not listing.may_have(*key)],
    )


def _by_name(manifest: Manifest) -> dict[tuple[str, str], InputEntry]:
    """Return a dataset's input entries by source and path; a file's last entry counts."""
    return {
        (entry.source, entry.path): entry
        for generation in manifest.generations
        for entry in generation.inputs
    }


def check_files(manifest: Manifest, *, output: AnyPath) -> None:
    """Check that the files of a dataset exist and have the sizes that the manifest gives.

    Raises:
        DamageError: A file is missing or has a different size.
    """
    sizes = files_in(output)  # for a URL, this is one listing instead of one request per file
    for name, entry in manifest.files():
        path, size = output / name, sizes.get(name, -1)
        if size != entry.bytes:
            state = "is missing" if size < 0 else f"has {size:,} bytes, not {entry.bytes:,}"
            raise DamageError(
                f"{path} {state}: the dataset is damaged. Restore the file from a copy, or give "
                "--overwrite to build the dataset again"
            )


def file_crc32c(
    file: InputFile, entry: InputEntry, *, input_format: InputFormat, split_bytes: int
) -> tuple[int, ...]:
    """Return the crc32c of each split of a file, which is split as it was for the dataset."""
    size = file.bytes if len(entry.crc32c) == 1 else split_bytes
    return tuple(stored_crc32c(split) for split in splits(file, input_format, split_bytes=size))


def dataset_inputs(
    manifest: Manifest, *, output: AnyPath
) -> dict[tuple[str, str], tuple[int, int, str] | None]:
    """Return the size, time and etag of each of a dataset's input files, by source and path.

    The value for a file is None if its time and etag are unknown.
    """
    times = _times(manifest, output)
    return {
        key: (entry.bytes, *times[key]) if times.get(key, (0, "")) != (0, "") else None
        for key, entry in _by_name(manifest).items()
    }


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """A file's entry in inputs.json, except its location `from`; old entries have fewer fields."""

    source: str
    path: str
    mtime_ns: int
    bytes: int = 0
    etag: str = ""
    crc32c: tuple[int, ...] = ()


def read_inputs(output: AnyPath) -> list[dict[str, Any]]:
    """Return the entries of inputs.json; empty if the file is missing.

    Raises:
        DamageError: The file does not have the form that a run writes.
    """
    path = output / INPUTS
    if not path.exists():
        return []
    entries = read_json(path)
    advice = "restore it from a copy, or delete it: files are then compared by their content"
    with json_errors_explained(path, advice):
        if not isinstance(entries, list):
            raise TypeError("it is not a list")
        for number, file in enumerate(entries):
            known = {key: value for key, value in file.items() if key != "from"}
            from_json(_Seen, known, where=f"file {number}")
            if not isinstance(file.get("from", ""), str):
                raise ValueError(f"file {number}: from is not a path")
    found: list[dict[str, Any]] = entries
    return found


def _times(manifest: Manifest, output: AnyPath) -> dict[tuple[str, str], tuple[int, str]]:
    """Return the recorded times and etags of a dataset's input files, by source and path.

    inputs.json is written before the manifest, so entries of a run that was killed in between do
    not count.
    """
    entries = _by_name(manifest)
    return {
        (file["source"], file["path"]): (file["mtime_ns"], file.get("etag", ""))
        for file in read_inputs(output)
        if (entry := entries.get((file["source"], file["path"])))
        and [*entry.crc32c] == file.get("crc32c", [*entry.crc32c])
    }


def _both_shown(name: str, now: Any, before: Any) -> tuple[str, str]:
    """Return two values of an option as its flag takes them; bounds that agree are left out."""
    if name == "quality" and isinstance(now, dict) and isinstance(before, dict):
        one, other = now["profiles"], before["profiles"]
        if one == other:  # versions may have different bounds for the same profile
            bounds = [_bounds(each["bounds"]) for each in (now, before)]
            one, other = (sorted(f"{x}={y:g}" for x, y in each.items()) for each in bounds)
            one, other = ([x for x in one if x not in other], [x for x in other if x not in one])
        return _shown(one), _shown(other)
    return _shown(now), _shown(before)


def _bounds(languages: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, float]:
    """Return the bounds of profiles by their names in --threshold."""
    return {
        f"{'' if language == EVERY_LANGUAGE else f'{language}:'}{bound['profile']}.{name}": value
        for language, profiles in languages.items()
        for bound in profiles
        for name, value in bound["bounds"].items()
    }


def _shown(value: Any, *, none: str = "nothing") -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict | list | tuple):
        value = ",".join(map(str, value))
    if value is None or value == "":
        return none
    text = _HASH.sub(r"\1…", str(value))
    text = repr(text) if text.isspace() else text
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


_MAX_SHOWN = 200
_HASH = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{56}\b")
"""Matches a SHA-256; messages show only its first eight digits."""
