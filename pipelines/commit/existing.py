"""A finished dataset that an earlier run left in the output."""

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
"""Advice for the user where the output contains another dataset."""

INPUTS = "inputs.json"
"""The file with a dataset's input files and their times: run logs, not part of the dataset."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """Names of the files whose fingerprints replace options, for a run and for a dataset."""

    tokenizers: tuple[TokenizerEntry, TokenizerEntry]
    """The tokenizer of the run and the tokenizer of the dataset."""
    given: tuple[Mapping[str, Any], Mapping[str, Any]]
    """The options as given to the run, and the dataset's options as far as report.json has them."""

    def shown(self, name: str, now: Any, before: Any) -> tuple[str, str]:
        """Return both values of an option as messages show them, with files by their names."""
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
    files: Files | None = None,
) -> None:
    """Check that a dataset was made with these semantic options.

    Args:
        manifest: The manifest of the dataset.
        options: The semantic options of the run.
        output: The folder of the dataset.
        advice: Advice for the user if options differ.
        files: Names of the files behind the options that are fingerprints.

    Raises:
        UserError: The dataset has other options; the message names the options that differ.
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
    odd += [f"the code of {what} was edited since" for what in edited.values()]
    if CORPUS_CODE in differing:
        changed = "was edited since" if CORPUS_CODE in manifest.options else "was not recorded then"
        odd.append(
            f"the code of the corpus {manifest.corpus!r} (its module, and what that imports of its "
            f"own) {changed}"
        )
    raise UserError(f"{output} holds a dataset made with other options: {'; '.join(odd)}. {advice}")


def _edited(
    before: Mapping[str, Any], now: Mapping[str, Any], names: Sequence[str]
) -> dict[str, str]:
    """Return the options whose only difference is user code, each with the name of that code."""
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
    """Check that a dataset was made by the command of this corpus; arguments as in check_options.

    Raises:
        UserError: Another command made it.
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
    """Check that a dataset was made from these files: by name, size and, if times differ, crc32c.

    Raises:
        UserError: The files differ; the message names the first such file.
    """
    unseen = find_unseen(manifest, listing, input_formats=input_formats, output=output, rehash=None)
    changes = {
        **dict.fromkeys(unseen.new, "is new"),
        **dict.fromkeys(unseen.changed, "has changed"),
    }
    named = {"/".join(file.name): change for file, change in changes.items()}
    named |= dict.fromkeys(unseen.gone, "is gone")
    if named:
        first = min(named)
        raise UserError(
            f"{output} holds a dataset of other input: {first} {named[first]} "
            f"({len(named)} files differ). Give --append to add what is new, or: {REPLACE}"
        )


@dataclass(frozen=True, kw_only=True)
class Unseen:
    """The files of an input that a dataset does not contain yet."""

    new: Sequence[InputFile]
    changed: Mapping[InputFile, str]
    """Files in the dataset that have changed since, with a description of the change."""
    gone: Sequence[str]
    """Files in the dataset that are missing from the input, as SOURCE/PATH."""


def find_unseen(
    manifest: Manifest,
    listing: Listing,
    *,
    input_formats: Mapping[str, InputFormat],
    output: AnyPath,
    rehash: bool | None,
) -> Unseen:
    """Return the files of an input that a dataset was not made from.

    A file counts as the same if its name, its size, and its time or etag are unchanged; where the
    old time is unknown, if its content is unchanged.

    Args:
        manifest: The manifest of the dataset.
        listing: The current input. A file that cannot be read now does not count as missing.
        input_formats: How the files of each source are read.
        output: The folder of the dataset.
        rehash: Whether to compare the content of every file; None compares files whose times
            changed.
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
    return Unseen(
        new=[now[key] for key in sorted(now.keys() - before.keys())],
        changed={file: text for file, text in changes.items() if text},
        gone=["/".join(key) for key in sorted(before) if not listing.may_have(*key)],
    )


def _by_name(manifest: Manifest) -> dict[tuple[str, str], InputEntry]:
    """Return a dataset's input entries by source and path; the latest entry of each file counts."""
    return {
        (entry.source, entry.path): entry
        for generation in manifest.generations
        for entry in generation.inputs
    }


def check_files(manifest: Manifest, *, output: AnyPath) -> None:
    """Check that the files of a dataset exist and have their sizes.

    Raises:
        DamageError: A file is missing or has another size.
    """
    sizes = files_in(output)  # for a URL, one listing instead of one request per file
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
    """Return the crc32c of each split of a file, cut as it was for the dataset."""
    size = file.bytes if len(entry.crc32c) == 1 else split_bytes
    return tuple(stored_crc32c(split) for split in splits(file, input_format, split_bytes=size))


def seen_files(
    manifest: Manifest, *, output: AnyPath
) -> dict[tuple[str, str], tuple[int, int, str] | None]:
    """Return size, time and etag of each file that a dataset was made from, by source and path.

    None stands for a file whose time and etag are not known.
    """
    times = _times(manifest, output)
    return {
        key: (entry.bytes, *times[key]) if times.get(key, (0, "")) != (0, "") else None
        for key, entry in _by_name(manifest).items()
    }


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """A file's entry in inputs.json, without its location `from`; old entries have fewer fields."""

    source: str
    path: str
    mtime_ns: int
    bytes: int = 0
    etag: str = ""
    crc32c: tuple[int, ...] = ()


def read_inputs(output: AnyPath) -> list[dict[str, Any]]:
    """Read inputs.json; {} if it is missing.

    Raises:
        DamageError: The file does not have the form that a run writes.
    """
    path = output / INPUTS
    if not path.exists():
        return []
    told = read_json(path)
    advice = "restore it from a copy, or delete it: files are then compared by their content"
    with json_errors_explained(path, advice):
        if not isinstance(told, list):
            raise TypeError("it is no list")
        for number, file in enumerate(told):
            known = {key: value for key, value in file.items() if key != "from"}
            from_json(_Seen, known, where=f"file {number}")
            if not isinstance(file.get("from", ""), str):
                raise ValueError(f"file {number}: from is no path")
    files: list[dict[str, Any]] = told
    return files


def _times(manifest: Manifest, output: AnyPath) -> dict[tuple[str, str], tuple[int, str]]:
    """Return mtime and etag of the files that the dataset was made from, where recorded.

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
    """Return two values of an option in the flag's notation; for bounds, only those that differ."""
    if name == "quality" and isinstance(now, dict) and isinstance(before, dict):
        one, other = now["profiles"], before["profiles"]
        if one == other:  # another version may have other bounds for the same profile
            bounds = [_bounds(each["bounds"]) for each in (now, before)]
            one, other = (sorted(f"{x}={y:g}" for x, y in each.items()) for each in bounds)
            one, other = ([x for x in one if x not in other], [x for x in other if x not in one])
        return _shown(one), _shown(other)
    return _shown(now), _shown(before)


def _bounds(languages: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, float]:
    """Return the bounds of profiles by the names that --threshold uses for them."""
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
