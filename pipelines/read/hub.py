"""Finds the data files of a dataset on the Hugging Face hub.

The library `datasets` determines the files of a config and a split from the dataset's card or the
names of its files; before that, the revision is resolved to a commit. The files are then read from
their URLs by the same readers as every other input.
"""

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pipelines.read.input_file import InputFile, shown, some_of
from pipelines.read.listing import Listing
from shards.errors import UserError
from shards.secrets import without_secrets
from shards.storage.address import error_text

DEFAULT_SPLIT = "train"

_PREFIX = "hf:"
_SPEC = re.compile(
    r"hf:(?P<repository>[\w.-]+/[\w.-]+)(?:@(?P<revision>[^:]+))?"
    r"(?::(?P<config>[^:]*)(?::(?P<split>[^:]+))?)?"
)
_FORM = "hf:OWNER/NAME[@REVISION][:CONFIG[:SPLIT]]"
_PATHS_PER_REQUEST = 500


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """A split of a config of a dataset on the hub."""

    repository: str
    """The repository, as OWNER/NAME."""
    revision: str | None
    """The branch, tag or commit; None means the main branch."""
    config: str | None
    """The config; None means the dataset's default config."""
    split: str

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        return f"{_PREFIX}{self.repository}{revision}:{self.config or ''}:{self.split}"


def is_hub_dataset(path: str) -> bool:
    """Return whether an input is a dataset of the hub (hf://... is a URL, not a dataset)."""
    return path.startswith(_PREFIX) and not path.startswith(f"{_PREFIX}//")


def parse_hub_dataset(text: str) -> DatasetSpec:
    """Return the dataset that hf:OWNER/NAME[@REVISION][:CONFIG[:SPLIT]] names.

    Raises:
        UserError: The text does not have this form.
    """
    match = _SPEC.fullmatch(text)
    if not match:
        raise UserError(
            f"The input {shown(text)} does not name a dataset of the Hugging Face hub; write "
            f"{_FORM}, for example hf:HuggingFaceFW/fineweb-2:cmn_Hani."
        )
    return DatasetSpec(
        repository=match["repository"],
        revision=match["revision"],
        config=match["config"] or None,
        split=match["split"] or DEFAULT_SPLIT,
    )


def find_hub_dataset(text: str) -> Listing:
    """Return the data files of a dataset, in no particular order.

    The path of a file is hf://datasets/OWNER/NAME@COMMIT/..., and its relative path is
    OWNER/NAME@COMMIT/....

    Raises:
        UserError: The dataset, config or split does not exist; the dataset is gated or made by a
            script; the hub cannot be reached; or `datasets` is not installed.
    """
    spec = parse_hub_dataset(text)
    with _explained(spec):
        commit = _commit(spec)
        root = f"hf://datasets/{spec.repository}@{commit}/"
        paths = [path.removeprefix(root) for path in _data_files(spec, commit)]
        files = [
            InputFile(
                path=f"{root}{info.path}",
                relative=f"{spec.repository}@{commit}/{info.path}",
                bytes=info.size,
                etag=info.blob_id,
            )
            for info in _infos(spec, paths, commit=commit)
        ]
    return Listing(root=_PREFIX, files=files)


# datasets and huggingface_hub are optional and take seconds to import, so each function that uses
# them imports them.


def _commit(spec: DatasetSpec) -> str:
    """Check that this account may read a dataset, and return the commit of its revision."""
    from huggingface_hub import HfApi  # noqa: PLC0415 - see above

    api = HfApi()
    info = api.dataset_info(spec.repository, revision=spec.revision)
    if info.gated:
        api.auth_check(spec.repository, repo_type="dataset")
    return str(info.sha)


def _data_files(spec: DatasetSpec, commit: str) -> list[str]:
    """Return the URLs of the data files of the config and split that a spec names."""
    from datasets import load_dataset_builder  # noqa: PLC0415 - see above

    # With a warm cache the library would answer even if the hub did not.
    with tempfile.TemporaryDirectory() as cache:
        builder = load_dataset_builder(
            spec.repository, name=spec.config, revision=commit, cache_dir=cache
        )
    files = builder.config.data_files or {}
    if spec.split not in files:
        raise UserError(
            f"The config {builder.config.name!r} of the dataset {spec.repository} has no split "
            f"{spec.split!r}; it has {some_of(sorted(map(str, files)))}. Write {_FORM}."
        )
    return sorted(set(map(str, files[spec.split])))


def _infos(spec: DatasetSpec, paths: Sequence[str], *, commit: str) -> list[Any]:
    """Query the hub for many paths at a time, and return the sizes and blob ids of the files."""
    from huggingface_hub import HfApi  # noqa: PLC0415 - see above

    api = HfApi()
    infos: list[Any] = []
    for start in range(0, len(paths), _PATHS_PER_REQUEST):
        batch = list(paths[start : start + _PATHS_PER_REQUEST])
        infos += api.get_paths_info(spec.repository, batch, revision=commit, repo_type="dataset")
    if {info.path for info in infos} != set(paths):
        raise UserError(
            f"The hub lists {len(paths)} files of {spec} and gives the sizes of {len(infos)}; run "
            "the command again."
        )
    return infos


@contextmanager
def _explained(spec: DatasetSpec) -> Iterator[None]:
    """Turn any error of the hub or its libraries into a UserError that quotes it."""
    try:
        yield
    except UserError:
        raise
    except ImportError as error:
        raise UserError(
            f"Reading {spec} needs libraries that are not installed: pip install 'corpusmill[hub]'."
        ) from error
    except Exception as error:
        # The two libraries and their HTTP library share no base class of exceptions.
        from huggingface_hub import constants  # noqa: PLC0415 - see above

        hub = without_secrets(constants.ENDPOINT)
        raise UserError(
            f"The dataset {spec} cannot be read from {hub} ({error_text(error)}). Check its name, "
            f"config and split, that its terms are accepted ({hub}/datasets/{spec.repository}) and "
            "HF_TOKEN is set if it is gated or private, the connection, HF_ENDPOINT if a mirror is "
            f"used, and that HF_HUB_OFFLINE is not set; or name its files by a URL, "
            f"hf://datasets/{spec.repository}/FOLDER, or download them and pass their folder."
        ) from error
