"""The Hugging Face hub: names of its repositories, and readable explanations of its errors.

OWNER/NAME              the newest commit of the main branch
OWNER/NAME@REVISION     a branch, a tag or a commit
"""

import logging
import re
import sys
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote

from shards.errors import UserError
from shards.secrets import without_secrets
from shards.storage.address import error_text

PREFIX = "hf:"
"""The prefix of a name of the hub, needed where a path is accepted too."""

_NAME = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_SNAPSHOT = re.compile(r"/datasets--([\w.-]+)--([\w.-]+)/snapshots/([0-9a-f]{40})(?![0-9a-f])")
"""Matches a snapshot's path in the cache of the hub's library: owner, name and commit."""


@dataclass(frozen=True)
class HubName:
    """A repository of the hub at a revision."""

    repository: str
    """OWNER/NAME."""
    revision: str | None = None
    """A branch, a tag or a commit; None stands for the main branch."""

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the repository that OWNER/NAME[@REVISION] names; None for any other text."""
        match = _NAME.fullmatch(text)
        return match and cls(match["repository"], match["revision"])

    @classmethod
    def of_snapshot(cls, path: str) -> Self | None:
        """Return the dataset and the commit of a folder in the cache; None for any other folder."""
        match = _SNAPSHOT.search(path)
        return match and cls(f"{match[1]}/{match[2]}", match[3])

    def __str__(self) -> str:
        return f"{PREFIX}{self.repository}{f'@{self.revision}' if self.revision else ''}"

    @property
    def url(self) -> str:
        """The address of the dataset in the form that fsspec takes."""
        at = f"@{quote(self.revision, safe='')}" if self.revision else ""
        return f"hf://datasets/{self.repository}{at}"


def dataset_name(text: str) -> HubName:
    """Return the dataset that OWNER/NAME[@REVISION] names; the text may begin with hf:.

    Raises:
        UserError: The text is not a valid name.
    """
    name = HubName.parse(text.removeprefix(PREFIX))
    if name is None:
        raise UserError(
            f"{text} is not the name of a dataset on the hub: write OWNER/NAME, where OWNER is a "
            "user or an organization there."
        )
    return name


# The hub's library takes a second to import, and most commands do not need it: so each function
# that uses it imports it.


def hub_endpoint() -> str:
    """Return the address of the hub, for use in messages."""
    from huggingface_hub import constants  # noqa: PLC0415  see above

    return without_secrets(constants.ENDPOINT)


def silence_hub(*, bars: bool = False) -> None:
    """Make the hub's library show only errors.

    Args:
        bars: Whether the library also shows progress bars on a terminal.
    """
    from huggingface_hub.utils.tqdm import disable_progress_bars  # noqa: PLC0415  see above

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    if not (bars and sys.stderr.isatty()):
        disable_progress_bars()


def failure_reason(error: Exception, name: HubName, *, kind: str) -> str:
    """Return the reason for which a request to the hub failed, in plain words.

    Args:
        error: An error of the hub's library or of its HTTP library.
        name: The requested repository.
        kind: The kind of repository, such as a model or a dataset.
    """
    from huggingface_hub import errors  # noqa: PLC0415  see above

    whys = {
        errors.LocalEntryNotFoundError: "the cache does not have all of it, and the hub cannot "
        "be reached",
        errors.GatedRepoError: "it is gated: accept its terms there, and set HF_TOKEN",
        errors.RevisionNotFoundError: f"it has no revision {name.revision}",
        errors.RepositoryNotFoundError: f"there is no such {kind}, or it is private and HF_TOKEN "
        "may not read it",
    }
    known = (why for kind, why in whys.items() if isinstance(error, kind))
    return next(known, error_text(error))
