"""Fetches published datasets to this machine, into the cache of the hub's library.

Files that the cache already contains are not fetched again and need no connection. Several
processes may fetch the same dataset: the library locks each file, so that it is downloaded once.
Files that training does not read (audit, signatures, rejects, dropped texts) are not fetched.
"""

from pathlib import Path

from shards.errors import UserError
from shards.manifest import NAME, read_manifest
from shards.paths import FOLDERS
from shards.storage.hub import HubName, dataset_name, failure_reason, hub_endpoint, silence_hub

_UNREAD = [f"*/{folder}/*" for folder in FOLDERS]


def at_commit(name: HubName) -> HubName:
    """Return the dataset at the commit that its revision names now; only the manifest is fetched.

    If there is no connection, the commit is the one that the revision named when the cache last
    fetched the dataset.

    Raises:
        UserError: There is no such dataset or revision, it is gated, it was not made by corpusmill,
            or the hub cannot be reached.
        DamageError: Its manifest is damaged.
    """
    folder = _snapshot(name, only=[NAME])
    if not (folder / NAME).exists():
        raise _refused(name, f"it is not a dataset of corpusmill: it has no {NAME}")
    read_manifest(folder)
    return HubName(name.repository, folder.name)


def fetch(name: HubName | str) -> Path:
    """Fetch the files that training reads and return the dataset's folder in the cache.

    Args:
        name: The name of the dataset, or the text hf:OWNER/NAME[@REVISION].

    Raises:
        UserError: The text is not such a name, or a reason of `at_commit` applies.
        DamageError: Its manifest is damaged.
    """
    if isinstance(name, str):
        name = dataset_name(name)
    return _snapshot(at_commit(name), without=_UNREAD)


def _snapshot(
    name: HubName, *, only: list[str] | None = None, without: list[str] | None = None
) -> Path:
    """Fetch the files that patterns select and return the commit's folder in the cache."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415  it takes a second to import

    silence_hub(bars=without is not None)
    try:
        folder = snapshot_download(
            name.repository,
            repo_type="dataset",
            revision=name.revision,
            allow_patterns=only,
            ignore_patterns=without,
        )
    except Exception as error:  # errors of the hub's and the HTTP library have no common class
        raise _refused(name, failure_reason(error, name, kind="dataset")) from error
    return Path(folder)


def _refused(name: HubName, why: str) -> UserError:
    return UserError(f"{name} cannot be read from the hub ({hub_endpoint()}): {why}.")
