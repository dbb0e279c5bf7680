"""A listing of the input files at one moment, including the files that are not read."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from pathlib import PurePosixPath

from pipelines.read.input_file import InputFile, shown, some_of
from pipelines.read.remarks import copies, gaps, left_out
from shards.errors import UserError
from shards.storage.address import is_url

_LOG = logging.getLogger("corpusmill")


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Lists the files of all inputs, or of one path of an input."""

    files: list[InputFile] = field(default_factory=list)
    refused: dict[InputFile, str] = field(default_factory=dict)
    """Files and folders (with a trailing slash) that cannot be read, each with the reason as the
    end of a sentence."""
    unmatched: list[str] = field(default_factory=list)
    """Files in the folders whose names do not match the patterns."""
    hidden: list[str] = field(default_factory=list)
    """Hidden files and folders (with a slash), which are read only if they are named."""
    searched: frozenset[str] = frozenset()
    """The sources whose files were found by a search, rather than given as a single file."""
    root: str = ""
    """If the listing is for one path, the folder that relative paths start from; "hf:" for a
    dataset of the hub."""
    is_file: bool = False
    """Whether the path is a file, which is read whatever its name is."""

    @classmethod
    def joined(cls, listings: Iterable["Listing"]) -> "Listing":
        """Combine several listings into one, with files sorted by source and path."""
        whole = cls()
        searched = set[str]()
        for listing in listings:
            whole.files.extend(listing.files)
            whole.refused.update(listing.refused)
            whole.unmatched.extend(listing.unmatched)
            whole.hidden.extend(listing.hidden)
            searched |= listing.searched
        whole.files.sort(key=lambda file: file.name)
        return replace(whole, searched=frozenset(searched))

    def of_source(self, source: str, folder: str) -> "Listing":
        """Return the listing as part of a source, with `folder` put before the files' names."""

        def moved(file: InputFile) -> InputFile:
            return replace(file, source=source, relative=f"{folder}/{file.relative}".lstrip("/"))

        return replace(
            self,
            files=[*map(moved, self.files)],
            refused={moved(file): why for file, why in self.refused.items()},
            searched=frozenset() if self.is_file else frozenset({source}),
        )

    @cached_property
    def _names(self) -> set[tuple[str, str]]:
        return {file.name for file in (*self.files, *self.refused)}

    def may_have(self, source: str, relative: str) -> bool:
        """Return whether a file exists, or may exist in a folder that cannot be listed."""
        parents = PurePosixPath(relative).parents
        names = [relative, *(f"{folder}/" for folder in parents)]
        return any((source, name) in self._names for name in names)

    def log_remarks(self) -> None:
        """Log remarks on files that are skipped, missing or present twice."""
        everything = (*self.files, *self.refused)
        for line in (
            *left_out(self.unmatched, self.hidden),
            *gaps(everything, searched=self.searched),
            *copies(self.files),
        ):
            _LOG.warning("%s", line)

    def named(self) -> str:
        """Return some of the refused files and the reasons, as part of a message."""
        odd = [f"{shown(file.path)} {why}" for file, why in self.refused.items()]
        return some_of(odd, between="; ")

    def check(self, advice: str = "") -> None:
        """Check that all files and folders can be read.

        Args:
            advice: Text to add to the advice to fix the input, such as an alternative.

        Raises:
            UserError: A file or folder cannot be read; the message names it.
        """
        if self.refused:
            number = len(self.refused)
            start = (
                "The input"
                if number == 1
                else f"{number} files or folders of the input cannot be read:"
            )
            raise UserError(
                f"{start} {self.named()}. Fix the input, or remove what is not part of it{advice}."
            )


def in_one_folder(paths: Sequence[Listing], source: str) -> Listing:
    """Combine the listings of a source's paths; files are named relative to the common folder.

    Raises:
        UserError: The paths have no folder in common, as is the case for a local path and a URL.
    """
    root = _common_folder([path.root for path in paths]) if len(paths) > 1 else paths[0].root
    whole = Listing.joined(
        path.of_source(source, path.root.removeprefix(root).strip("/")) for path in paths
    )
    return whole if len(paths) == 1 else replace(whole, searched=frozenset({source}))


def _common_folder(roots: Sequence[str]) -> str:
    """Return the deepest folder that contains all the given folders."""
    parts = zip(*(root.split("/") for root in roots), strict=False)
    same = [names[0] for names in takewhile(lambda names: len({*names}) == 1, parts)]
    host = 3  # The number of components of s3://bucket.
    if not same or (any(map(is_url, roots)) and len(same) < host):
        raise UserError(
            f"The inputs {shown(roots[0])} and {shown(next(r for r in roots if r != roots[0]))} "
            "have no folder in common: give each input a name, as in --input news=PATH --input "
            "books=PATH."
        )
    return "/".join(same)
