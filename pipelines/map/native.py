"""Whether the start of native loops (pipelines/compiled.py) is worth it to a run.

They decide no bytes, so a wrong guess costs seconds and nothing else.
"""

from collections.abc import Sequence

from pipelines import compiled
from pipelines.corpus.options import Options
from pipelines.corpus.part import corpus_fraction
from pipelines.inputs.endings import COMPRESSIONS
from pipelines.inputs.files import InputFile
from pipelines.map.chain import native_parts
from pipelines.quality import Quality

START_SECONDS = 2.5
"""CPU time of a process that imports numba and loads what was compiled before."""

COMPILE_SECONDS = 10.0
"""CPU time of the first process of a machine, which compiles while the others wait (measured, as is
what follows: runs of 4 and 8 MB of English and Chinese text with the loops and without)."""

COMPILE_RULES_SECONDS = 27.0
"""The same, with quality rules."""

SAVED_BARE = 0.1
"""CPU seconds that the loops save for each MB of text without rules."""

SAVED_RULES = 0.25
"""The same, with rules."""

SAVED_WORDS = 1.0
"""The same, with rules that need a library to find the words: at least so many."""

PACKED = 3
"""How often a compressed file is as long as it is stored, roughly."""

_PACKED_NAMES = (*COMPRESSIONS, ".parquet")


def native_pays(options: Options, files: Sequence[InputFile], *, workers: int) -> bool:
    """Return whether native loops save a run more time than they take to start.

    Args:
        options: The options of the run.
        files: Its input.
        workers: Worker processes on this machine; 0: unknown, or this one.
    """
    if not compiled.available():
        return False
    quality = Quality.parse(options.quality, overrides=options.threshold, labels=None)
    rules = SAVED_WORDS if quality.engines else SAVED_RULES
    saved = rules if quality.columns else SAVED_BARE
    gain = saved * _megabytes(files) * corpus_fraction(options.part) / max(1, workers)
    cost = START_SECONDS
    if not options.watch and not compiled.kept(native_parts(options)):  # a watch has many runs
        cost += COMPILE_RULES_SECONDS if quality.columns else COMPILE_SECONDS
    return gain > cost


def _megabytes(files: Sequence[InputFile]) -> float:
    packed = sum(file.bytes for file in files if file.relative.lower().endswith(_PACKED_NAMES))
    return (sum(file.bytes for file in files) + (PACKED - 1) * packed) / 1e6
