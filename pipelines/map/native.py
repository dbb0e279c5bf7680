"""Whether the start of native loops (pipelines/compiled.py) is worth it to a run.

They decide no bytes, so a wrong guess costs seconds and nothing else.
"""

from collections.abc import Sequence

from pipelines import compiled
from pipelines.corpus.options import Options
from pipelines.corpus.part import corpus_fraction
from pipelines.inputs.files import InputFile
from pipelines.map.chain import native_parts
from pipelines.quality import Quality

START_SECONDS = 2.5
"""CPU time of a process that imports numba and loads what was compiled before."""

COMPILE_SECONDS = 20.0
"""CPU time of the first process of a machine, which compiles."""

SAVED_BARE = 0.06
"""CPU seconds that the loops save for each MB of text without quality rules (measured: runs of 12
MB of English and Chinese text with the loops and without)."""

SAVED_RULES = 0.25
"""The same, with rules."""

SAVED_WORDS = 2.0
"""The same, with rules that need a library to find the words."""

PACKED = 3
"""How often a compressed file is as long as it is stored, roughly."""

_PACKED_NAMES = (".gz", ".zst", ".bz2", ".parquet")


def native_pays(options: Options, files: Sequence[InputFile], *, workers: int) -> bool:
    """Return whether native loops save a run more time than they take to start.

    Args:
        options: The options of the run.
        files: Its input.
        workers: Worker processes on this machine; 0: unknown, or this one.
    """
    if not compiled.available():
        return False
    seconds = _saved(options) * _megabytes(files) * corpus_fraction(options.part)
    short = seconds < COMPILE_SECONDS and not options.watch  # which has many runs before it
    if short and not compiled.kept(native_parts(options)):
        return False
    return seconds > START_SECONDS * max(1, workers)


def _saved(options: Options) -> float:
    quality = Quality.parse(options.quality, overrides=options.threshold, labels=None)
    if quality.engines:
        return SAVED_WORDS
    return SAVED_RULES if quality.columns else SAVED_BARE


def _megabytes(files: Sequence[InputFile]) -> float:
    packed = sum(file.bytes for file in files if file.relative.endswith(_PACKED_NAMES))
    return (sum(file.bytes for file in files) + (PACKED - 1) * packed) / 1e6
