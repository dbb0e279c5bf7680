"""A dataset becomes a repository of the Hugging Face hub, by commits of the hub's own library.

    new files, some at a time ─▶ commits ─▶ the last one: card, report, manifest; without what
                                            the manifest does not name any more

Name and size say whether a file is there: names of generations are hashes of all that decides their
bytes. So a push that was stopped goes on, that of a dataset that grew sends what is new, and who
reads the dataset meanwhile finds the manifest before with all its files, or none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shards.card import CARD, OURS, card_of
from shards.errors import DamageError, UserError
from shards.manifest import NAME, Manifest, read_manifest
from shards.program import called
from shards.progress import counted
from shards.prune import leftovers, way
from shards.storage.files import FileEntry, files, size_if_there
from shards.storage.hub import HubName, endpoint, push_reason, quiet
from shards.storage.remote import RemotePath, relative
from shards.verify import check_file

_REPORT = "report.html"
_MOST_FILES, _MOST_BYTES = 256, 5 << 30
"""Of a commit: the hub takes so many files at once, and what was committed is not looked at again
when a push goes on."""


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """What a push has changed."""

    sent: int
    """Bytes of the dataset's files that were not there."""
    kept: int
    """Bytes of those that were."""
    deleted: int
    """Files there that the manifest does not name."""
    commit: str
    is_new: bool
    """Whether anything has changed."""


def push(
    directory: Path, name: HubName, *, private: bool, tell: Callable[[str, int], None]
) -> Pushed:
    """Let a repository of the hub hold a dataset.

    Args:
        directory: Of the dataset.
        name: Where to; its revision is a branch, which is made if there is none.
        private: Whether a repository that is made is private.
        tell: Called with path and size in bytes of each file that was not there, once it is.

    Raises:
        UserError: There is no dataset, it has texts that were removed, or the hub refuses it.
        DamageError: A file is missing or damaged.
    """
    manifest = read_manifest(directory)
    what = f"manifest {manifest.number}"
    _check(directory, manifest)
    with _explained(directory, name):
        repository = _Repository(name, private=private)
        before, there = repository.head(), repository.files
        present = files(there)
        new = {path: each for path, each in manifest.files() if present.get(path) != each.bytes}
        for batch in counted("push", _batches(new), total=_size(new), weight=_size, unit="MB"):
            _check_content(directory, batch)
            repository.commit(f"Files of {what}", {path: directory / path for path in batch})
            for path, entry in batch.items():
                tell(path, entry.bytes)
        whole = {relative(each.path, there) for each in leftovers(there, manifest)}
        old = [path for path in present if not whole.isdisjoint(way(path))]
        about = {
            **_card(directory, manifest, name, there=there / CARD),
            **({_REPORT: directory / _REPORT} if (directory / _REPORT).is_file() else {}),
            NAME: directory / NAME,
        }
        head = repository.commit(what.capitalize(), about, without=old)
    sent = _size(new)
    return Pushed(
        sent=sent,
        kept=_size(dict(manifest.files())) - sent,
        deleted=len(old),
        commit=head,
        is_new=head != before,
    )


class _Repository:
    """The repository of a dataset, at a branch."""

    def __init__(self, name: HubName, *, private: bool) -> None:
        """Find or make it."""
        # It takes a second to import, and is part of an extra.
        from huggingface_hub import HfApi  # noqa: PLC0415

        quiet()
        self._api, self._name, self._branch = HfApi(), name.repository, name.revision
        self._api.create_repo(
            self._name, repo_type="dataset", private=private or None, exist_ok=True
        )
        if self._branch:
            self._api.create_branch(
                self._name, branch=self._branch, repo_type="dataset", exist_ok=True
            )
        self.files = RemotePath.of(name.url)

    def head(self) -> str:
        """Return its newest commit."""
        return str(self._api.dataset_info(self._name, revision=self._branch).sha)

    def commit(
        self,
        what: str,
        added: Mapping[str, Path | bytes],
        *,
        without: Sequence[str] = (),
    ) -> str:
        """Add and delete files at once, and return the newest commit; equal files are no change."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete  # noqa: PLC0415

        made = self._api.create_commit(
            self._name,
            [
                *(CommitOperationDelete(path) for path in without),
                *(CommitOperationAdd(path, content) for path, content in added.items()),
            ],
            repo_type="dataset",
            revision=self._branch,
            commit_message=what,
        )
        return made.oid


def _card(
    directory: Path, manifest: Manifest, name: HubName, *, there: RemotePath
) -> dict[str, Path | bytes]:
    """Return the dataset's own card or one of its manifest; nothing if somebody wrote one there."""
    if (directory / CARD).is_file():
        return {CARD: directory / CARD}
    is_theirs = there.exists() and OURS.encode() not in there.read()
    return {} if is_theirs else {CARD: card_of(manifest, name).encode()}


def _batches(new: Mapping[str, FileEntry]) -> Iterator[dict[str, FileEntry]]:
    """Yield files by commit."""
    batch: dict[str, FileEntry] = {}
    for path, entry in new.items():
        batch[path] = entry
        if len(batch) == _MOST_FILES or _size(batch) >= _MOST_BYTES:
            yield batch
            batch = {}
    if batch:
        yield batch


def _size(entries: Mapping[str, FileEntry]) -> int:
    return sum(entry.bytes for entry in entries.values())


def _check(directory: Path, manifest: Manifest) -> None:
    """Check that all files are there, and that none has text which somebody has removed."""
    if number := sum(removal.documents.rows for removal in manifest.removals):
        raise UserError(
            f"the text of removed documents ({number:,}) is still in the files of {directory}, and "
            f"a push would publish it. Take it out first: {called('shards compact')} {directory} "
            "--erase"
        )
    short = [p for p, entry in manifest.files() if size_if_there(directory / p) != entry.bytes]
    if short:
        raise DamageError(
            f"{directory} lacks {len(short):,} of its files, or has them cut short; the first is "
            f"{short[0]}. Restore them from a copy; of the share of a node, push the whole dataset."
        )


def _check_content(directory: Path, entries: Mapping[str, FileEntry]) -> None:
    for path, entry in entries.items():
        if problem := check_file(directory / path, entry):
            raise DamageError(f"{problem}: restore it from a copy, or build the dataset again.")


@contextmanager
def _explained(directory: Path, name: HubName) -> Iterator[None]:
    try:
        yield
    except (UserError, ImportError):
        raise
    except Exception as error:  # the hub's and the HTTP library's have no class in common
        raise UserError(
            f"{directory} cannot be pushed to {name} ({endpoint()}): {push_reason(error, name)}. "
            "What is there stays, and the same command goes on from there."
        ) from error
