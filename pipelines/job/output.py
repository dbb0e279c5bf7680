"""Checks that a run's output is outside the inputs, and that names suit all file systems.

These checks run before any file is made. The next run would read a dataset that is among its
inputs, and a clean-up could delete inputs in the dataset's folder.
"""

import glob
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from pipelines.corpus.options import Options
from pipelines.corpus.sources import input_specs
from pipelines.corpus.spec import CorpusSpec
from pipelines.read.files import input_paths, named_inputs
from pipelines.read.hub import is_hub_dataset
from pipelines.read.names import split_at_wildcard
from shards.errors import UserError
from shards.manifest import NAME, WORK, read_manifest
from shards.paths import check_sources
from shards.storage.address import is_url
from shards.storage.disk import disk_errors_explained
from shards.storage.files import size_if_there
from shards.storage.remote import AnyPath, RemotePath

_SCHEMES = {"s3a": "s3", "gcs": "gs"}
"""The usual names of protocols, by their alternative names."""

_ENDINGS = (
    *(".arrow", ".bin", ".html", ".idx", ".json", ".parquet", ".tmp"),
    *(".audit", ".bins", ".documents", ".examples", ".hashes", ".holdout", ".rejects"),
    *(".slots", ".bands", ".texts", ".tokens", ".drops", ".edges", ".known"),
    *(".lineages", ".lock", ".readers"),
)
"""Endings of the names of all files in an output, including files in .work and unfinished files."""

_Parts = tuple[Sequence[str], Sequence[str]]
"""The parts of an input's path before the first part with a wildcard, and the remaining parts."""


def check_output(options: Options, spec: CorpusSpec) -> None:
    """Check where a run reads and writes, and the names of its sources.

    Args:
        options: Complete options, as `completed` returns them.
        spec: The description of the corpus whose command this is.

    Raises:
        UserError: The output is, contains or is inside an input; a folder of the output is a link;
            the name of a source cannot be a folder's name; or the output's manifest is damaged.
    """
    specs, output = input_specs(options), options.output
    for path in input_paths(specs):
        check_apart(path, output)
    if isinstance(output, Path):
        _check_work(output / WORK)
    names = [name for name, _ in named_inputs(specs, spec.name)]
    try:
        check_sources(names)
    except UserError:  # an existing dataset with such names keeps them
        check_sources(names, present=_sources(output))
    if options.grows:
        check_sources(names, present=_sources(output))


def _sources(output: AnyPath) -> Sequence[str]:
    return read_manifest(output).sources() if size_if_there(output / NAME) >= 0 else ()


def _check_work(work: Path) -> None:
    """Check that neither .work nor a folder in .work is a symlink."""
    with disk_errors_explained(work):
        paths = [work, *(work.iterdir() if work.is_dir() else ())]
        links = [path for path in paths if path.is_symlink()]
    if links:
        raise UserError(
            f"{links[0]} is a link to {_real(links[0])}: runs with other outputs could use the "
            "same folder and delete each other's files. Remove the link (its target stays), or "
            "give an --output on that disk"
        )


def check_apart(spec: str, output: AnyPath) -> None:
    """Check that an input and an output do not contain each other, after following links.

    Args:
        spec: A folder, a file or a glob, as a path or a URL; datasets of the hub always pass.
        output: The folder of the output.

    Raises:
        UserError: The input and the output are the same, or one contains the other.
    """
    if is_hub_dataset(spec):
        return
    if is_url(spec) or isinstance(output, RemotePath):
        if is_url(spec) and isinstance(output, RemotePath):
            _check_parts(split_at_wildcard(_url_parts(spec)), _url_parts(str(output)), spec, output)
        return
    with suppress(OSError, ValueError):  # listing reports paths that cannot be read
        _check_local(spec, output)


def _check_local(spec: str, output: Path) -> None:
    real, path = _real(output), Path(spec)
    if path.is_dir():
        _check_parts((_real(path).parts, ()), real.parts, spec, output)
    elif path.exists() or not glob.has_magic(spec):
        if any(each.is_relative_to(real) for each in (_real(path.parent) / path.name, _real(path))):
            raise _input_inside(spec, output)
    else:
        fixed, pattern = split_at_wildcard(path.parts)
        _check_parts((_real(Path(*fixed)).parts, pattern), real.parts, spec, output)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _check_parts(parts: _Parts, place: Sequence[str], spec: str, output: AnyPath) -> None:
    """Check by the parts of their paths that neither an input nor the output contains the other."""
    fixed, pattern = parts
    if tuple(fixed[: len(place)]) == tuple(place):
        raise _input_inside(spec, output)
    if tuple(place[: len(fixed)]) == tuple(fixed) and _reaches(pattern, place[len(fixed) :]):
        raise _output_inside(spec, output)


def _reaches(pattern: Sequence[str], below: Sequence[str]) -> bool:
    """Return whether a pattern may match files of a dataset whose folder is `below`.

    Both are given as parts of paths relative to the same folder.
    """
    if pattern and not _may_match_output(pattern[-1]):
        return False
    for part, name in zip(pattern, below, strict=False):
        if part == "**":
            return True
        if not fnmatchcase(name, part):
            return False
    return not pattern or len(pattern) > len(below)


def _may_match_output(pattern: str) -> bool:
    """Return whether a name with wildcards may match a file that a run writes."""
    end = re.split(r"[*?\]]", pattern)[-1]
    return any(end.endswith(ending) or ending.endswith(end) for ending in _ENDINGS)


def _url_parts(url: str) -> tuple[str, ...]:
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    return (_SCHEMES.get(scheme, scheme), *(part for part in rest.split("/") if part))


def _output_inside(spec: str, output: AnyPath) -> UserError:
    return UserError(
        f"the output {output} is in the input {spec}: another run would read the "
        "dataset's own files as input. Give an --output outside of the input"
    )


def _input_inside(spec: str, output: AnyPath) -> UserError:
    return UserError(
        f"the input {spec} is the output {output}, or is in it: a dataset needs a folder "
        "without other files. Give an --output outside of the input"
    )
