"""Chinese words by jieba, or the same by compiled loops.

jieba takes most of a second to read its dictionary into 60 MB, and then splits a megabyte a second.
The loops start in a fifth of that time and split forty. They use jieba's own files; where these are
not those of the version that they follow, jieba does the work.
"""

import importlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pipelines.quality.spans import Cut

_LOG = logging.getLogger(__name__)


def load_jieba() -> Any:
    """Return jieba's tokenizer with its own dictionary."""
    tokenizer = _jieba().Tokenizer()
    # Its own loader would trust a cache file in the shared temporary folder, whoever wrote it.
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


def load_compiled() -> Cut | None:
    """Return what cuts as jieba's accurate mode does; None, with a warning, if it may not.

    Words have no white space at their ends, and those that are nothing else are left out.
    """
    try:
        from pipelines.quality.compiled.chinese_words import checked_cut  # noqa: PLC0415  numba

        return checked_cut(_jieba())
    except Exception as error:  # noqa: BLE001  whatever fails here, jieba can do
        _LOG.warning("Compiled loops cannot find Chinese words: %s. jieba is slower.", error)
        return None


def _jieba() -> Any:
    with _quiet_import():
        jieba = importlib.import_module("jieba")
    jieba.setLogLevel(logging.WARNING)
    return jieba


@contextmanager
def _quiet_import() -> Iterator[None]:
    # jieba 0.42.1 has invalid escapes and imports pkg_resources: warnings that nobody here can fix.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
