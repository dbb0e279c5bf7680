"""Byte-level BPE by fastokens, if it is installed and gives the ids of the reference.

fastokens is several times as fast as tiktoken, and young: hence the check (agreement.py).
"""

import importlib.util
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.compiled import proven
from pipelines.tokenizers.agreement import CHECK_TEXTS, first_difference
from pipelines.tokenizers.model import Encode, version


def fastokens_encoder(
    build: Callable[[], Encode], reference: Encode, *, engine: str
) -> Encode | None:
    """Return the encoder that `build` makes if fastokens is installed and agrees, else None.

    Args:
        build: makes the encoder by one of the functions below.
        reference: gives the right ids.
        engine: the library behind the reference, for the warning if the two differ.
    """
    if importlib.util.find_spec("fastokens") is None:
        return None
    return proven(
        version("fastokens"),
        build,
        lambda encode: first_difference(encode, reference, CHECK_TEXTS),
        plain=None,
        instead=engine,
        native=False,
    )


def fast_from_json(description: str) -> Encode:
    """Return the encoder of a `tokenizer.json`."""
    return _encoder(lambda library: library.from_json_str(description))


def fast_from_ranks(ranks: bytes, *, pattern: str) -> Encode:
    """Return the encoder of tiktoken's ranks, given the lines of their file and the pattern."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ranks.tiktoken")
        path.write_bytes(ranks)
        return _encoder(lambda library: library.from_tiktoken(str(path), pattern=pattern))


def _encoder(build: Callable[[Any], Any]) -> Encode:
    # Work is shared out as one process per core; threads of its own would only get in the way.
    # (fastokens 0.3 reads the first for its own workers, the second through Rayon.)
    os.environ.setdefault("FASTOKENS_BPE_THREADS", "1")
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    import fastokens  # noqa: PLC0415  optional

    tokenizer = build(fastokens.Tokenizer)

    def encode(texts: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        ids, offsets = tokenizer.encode_batch_flat(list(texts), split_special_tokens=True)
        ends = np.frombuffer(offsets, "<u8").astype(np.int64)
        return np.frombuffer(ids, "<u4"), np.diff(ends)

    return encode
