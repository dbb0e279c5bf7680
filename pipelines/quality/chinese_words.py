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

from pipelines.compiled import proven
from pipelines.quality.spans import Cut, code_points

# Words within words, names that only the model finds, Han that it does not know or that no block
# has, single characters that are a word of the dictionary together, Latin by all its patterns.
_CHECK = (
    "他|来到|了|网易|杭研|大厦|，|研究|生命|的|起源|。|李小福|是|创新|办|主任|也|是|云|计算|方面|的|"
    "专家|；|C++|与|c#|、|T恤衫|：|v1.5%|_|x|.-|3a|.|b| |AT&T|\r\n|鿕|鿖|𠀀|㐀|𠮷|野|家|龘|靐|齉|"
    "齾|，|一|七|∶|咱们|仨俩|1号店|。|江南style|囧|囧|囍|阿Q|正传|A.1|.|2%|%|2|、|２|3.14|元|100%|纯|—|あ|한"
)
"""A text as jieba splits it."""


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

    def make() -> Cut:
        from pipelines.quality.compiled.chinese_words import load_cut  # noqa: PLC0415  numba

        return load_cut(_jieba())

    def differs(cut: Cut) -> str | None:
        text = _CHECK.replace("|", "")
        words = cut(code_points(text)).of(text)
        same = words == [word for word in map(str.strip, _CHECK.split("|")) if word]
        return None if same else f"it finds {'|'.join(words[:8])} where jieba finds {_CHECK[:20]}"

    return proven(
        "Compiled code for Chinese words",
        make,
        differs,
        plain=None,
        instead="jieba, which is slower,",
        part="Chinese words",
    )


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
