"""Writes a corpus of two sources and any size, for `--plan` beside the run that it foretells.

    zh/part-*.json       WuDao's arrays, seven tenths of the bytes of text
    en/part-*.jsonl.zst  JSON lines, packed

The documents are made of passages of real texts, as generate_wudao.py makes them; one in twenty
stands in the corpus several times. The same arguments give the same bytes.
"""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import zstandard

from tests.bench.generate_wudao import documents, passage_pool, write_part, zst_texts

REPEATED = 20
"""Every so many documents one of a few is written again."""

_COMMON = 500
_CHINESE = 0.7


def write_mixture(output: Path, *, chinese: Path, english: Path, megabytes: float) -> None:
    """Write the corpus.

    Args:
        output: Its folder, made anew.
        chinese: A jsonl.zst with texts to take passages of.
        english: Another.
        megabytes: UTF-8 bytes of all documents, about.
    """
    files = max(2, round(megabytes / 400))
    each = megabytes * 1e6 / files
    zh, en = (passage_pool(zst_texts(path)) for path in (chinese, english))
    for name in ("zh", "en"):
        (output / name).mkdir(parents=True)
    for number in range(files):
        contents = _contents(zh, seed=[number, 0])
        path = output / "zh" / f"part-{number:04}.json"
        write_part(path, contents, limit=int(each * _CHINESE))
        contents = _contents(en, seed=[number, 1])
        _write_lines(
            output / "en" / f"part-{number:04}.jsonl.zst", contents, limit=each * (1 - _CHINESE)
        )


def _contents(pool: Sequence[bytes], *, seed: Sequence[int]) -> Iterator[bytes]:
    """Yield documents without end, every REPEATED-th one of those that all files share."""
    common = list(itertools.islice(documents([*pool], rng=np.random.default_rng(1)), _COMMON))
    rng = np.random.default_rng([*seed])
    for number, content in enumerate(documents([*pool], rng=rng)):
        yield content if number % REPEATED else common[int(rng.integers(_COMMON))]


def _write_lines(path: Path, contents: Iterator[bytes], *, limit: float) -> None:
    size = 0
    with path.open("wb") as raw, zstandard.ZstdCompressor(level=3).stream_writer(raw) as file:
        while size < limit:
            size += file.write(b'{"text": "%b"}\n' % next(contents))
