"""Finds and reads the files with the weights of a published model.

    model.safetensors, or its shards with model.safetensors.index.json
    pytorch_model.bin, or its shards with pytorch_model.bin.index.json
    mp_rank_NN_model_states.pt, one per rank of model parallelism, in the folder or the one that
    latest or latest_checkpointed_iteration.txt names

Torch files are pickles of the weights by name, or have the weights in the entry `module`
(THUDM/GLM, DeepSpeed). The latter also contain the state of NumPy's generator, whose types are
therefore allowed in addition to tensors and plain values (`torch_file`).
"""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from shards.errors import DamageError, UserError
from trainer.import_weights.config_json import FORMS, INDEX_SUFFIX
from trainer.import_weights.foreign import NANOGPT_ADVICE, refuse_foreign
from trainer.import_weights.weights import listed
from trainer.json_file import read_object
from trainer.torch_file import one_line, read_torch_file

STEMS = tuple(name.partition(".")[0] for name in FORMS)
"""Prefixes of the names of files that transformers writes."""
_TRACKERS = ("latest", "latest_checkpointed_iteration.txt")
_FILE = "mp_rank_{}_model_states.pt"
_MAX_TAG = 255
"""The maximum number of characters of a folder's name."""
_POINTER = b"version https://git-lfs"
"""The beginning of a pointer file, which git without LFS writes instead of a large file."""


def find_files(path: Path) -> list[list[Path]]:
    """Return the files of a model: for each rank of model parallelism, the shards of that rank.

    Args:
        path: a file, or a folder as described above.

    Raises:
        UserError: there is no such model, or some of its files are missing.
        DamageError: an index does not name files.
    """
    if path.is_file():
        return [[path]]
    if not path.is_dir():
        raise UserError(f"there is no checkpoint {path}: no such file or folder.")
    for folder in _folders(path):
        if shards := _shards(folder):
            return [shards]
        if parts := _parts(folder):
            return [[part] for part in parts]
    refuse_foreign(path)
    raise UserError(
        f"{path} contains no checkpoint: neither {', '.join(FORMS)}, {_FILE.format('00')} nor a "
        f"file {' or '.join(_TRACKERS)} that names a folder with it."
    )


def _folders(path: Path) -> Iterator[Path]:
    """Yield the folders that may contain the files: `path`, and those that trackers name.

    Raises:
        UserError: a tracker names a folder that does not exist.
    """
    yield path
    for tracker in _TRACKERS:
        if (path / tracker).is_file():
            tag = (path / tracker).read_text("utf-8", "replace").strip()[:_MAX_TAG]
            if tag not in {entry.name for entry in path.iterdir()}:
                raise UserError(f"{path / tracker} names {tag!a}, but {path} has no such folder.")
            yield path / tag


def _shards(folder: Path) -> list[Path]:
    """Return a model's files if they have transformers' format, else []."""
    for name in FORMS:
        index = folder / f"{name}{INDEX_SUFFIX}"
        if (folder / name).is_file():
            return [folder / name]
        if index.is_file():
            return _named_by(index)
        stem, _, ending = name.partition(".")
        if parts := sorted(part.name for part in folder.glob(f"{stem}-*-of-*.{ending}")):
            raise UserError(f"{folder} contains {listed(parts)}, but no {index.name}: copy it too.")
    return []


def _named_by(index: Path) -> list[Path]:
    """Return the files that an index names.

    Raises:
        DamageError: the index does not name files next to it.
        UserError: some of the files are missing.
    """
    named = read_object(index).get("weight_map")
    names = sorted({str(name) for name in named.values()}) if isinstance(named, dict) else []
    if not names or any(Path(name).name != name for name in names):
        raise DamageError(f"{index} does not name files next to it: copy it again.")
    if lacking := [name for name in names if not (index.parent / name).is_file()]:
        raise UserError(
            f"{index.parent} lacks {len(lacking)} of the {len(names)} files that {index.name} "
            f"names: {listed(lacking)}. Copy all of them."
        )
    return [index.parent / name for name in names]


def _parts(folder: Path) -> list[Path]:
    """Return one file per rank of model parallelism; none if there are no such files."""
    there = {file.name for file in folder.glob(_FILE.format("*"))}
    names = [_FILE.format(f"{rank:02}") for rank in range(len(there))]
    if lacking := [name for name in names if name not in there]:
        raise UserError(
            f"{folder} contains {len(there)} files of a checkpoint, but no {lacking[0]}: copy all "
            "of them."
        )
    return [folder / name for name in names]


def load_tensors(path: Path) -> Mapping[str, Tensor]:
    """Return the weights in a file by name, memory-mapped if the format allows that.

    Raises:
        UserError: the file contains more than weights, or cannot be read now.
        DamageError: the file is damaged.
    """
    if _is_pointer(path):
        raise DamageError(
            f"{path} is a pointer of Git LFS, not the file itself: run git lfs pull in its folder, "
            "or download the file."
        )
    return _safetensors(path) if path.suffix == ".safetensors" else _torch(path)


def _is_pointer(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:  # reported when the file is read
        return False


def _safetensors(path: Path) -> Mapping[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise DamageError(
            f"{path} is not a safetensors file, or was damaged ({one_line(error)}): copy it again."
        ) from error


def _torch(path: Path) -> Mapping[str, Tensor]:
    content = read_torch_file(path, _numpy_state_types())
    if "model_args" in content:
        raise UserError(f"{path} is a checkpoint of nanoGPT: {NANOGPT_ADVICE}.")
    state = content.get("module", content)
    if (
        not isinstance(state, dict)
        or not state
        or not all(isinstance(value, Tensor) for value in state.values())
    ):
        raise UserError(
            f"{path} is not a GLM checkpoint: it has neither tensors by name nor an entry 'module' "
            f"with them; its entries are {listed([str(name) for name in content]) or 'none'}."
        )
    return state


def _numpy_state_types() -> list[Any]:
    """Return the types in a pickled array of uint32, under NumPy's old and new names."""
    with warnings.catch_warnings():
        # The module of the type is private, but pickles name it.
        warnings.simplefilter("ignore", DeprecationWarning)
        rebuild = np.zeros(1, np.uint32).__reduce__()[0]
    return [
        rebuild,
        (rebuild, "numpy.core.multiarray._reconstruct"),
        (rebuild, "numpy._core.multiarray._reconstruct"),
        np.ndarray,
        np.dtype,
        type(np.dtype(np.uint32)),
    ]
