"""The words of a text, as each profile counts them, split once per text.

There are three splitters: white space; jieba's accurate mode for Chinese; spaCy's English rules,
which datatrove uses. The last two take seconds to load, so they are loaded on first use.
"""

import importlib.metadata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.compiled import proven
from pipelines.quality import chinese_words, english
from pipelines.quality.spans import Cut, WordSpans, code_points

CHINESE = frozenset({"zh", "yue", "wuu"})
"""Languages (labels of lid.176) that jieba splits into words; datatrove has the same three."""

UNSPACED = CHINESE | {"bo", "ja", "km", "lo", "my", "th"}
"""Languages written without spaces between words."""

ENGLISH = "en"

SPACES, DATATROVE = "spaces", "datatrove"
"""Ways to count words: str.split() (jieba for Chinese); spaCy for English, jieba for Chinese."""


class Splitters:
    """The loaded splitters of one process."""

    own = False
    """Whether the words are those of a splitter of one's own, whatever kind is asked for."""

    def words(self, text: str, *, language: str, kind: str) -> list[str]:
        """Return the words of a text, none empty or with white space at its ends.

        Args:
            text: Any text.
            language: Its label of lid.176.
            kind: SPACES or DATATROVE.
        """
        if language in CHINESE:
            return self._chinese_words(text)
        return self._any_english.words(text) if kind == DATATROVE else text.split()

    def spans(
        self, text: str, codes: npt.NDArray[np.uint32], *, language: str, kind: str
    ) -> WordSpans | None:
        """Return the words of a text as ranges of its code points; None if only words() has them.

        Args:
            text: Any text.
            codes: Its code points, uint32[len(text)].
            language: Its label of lid.176.
            kind: SPACES or DATATROVE.
        """
        spans: WordSpans | None = None
        if language in CHINESE:
            spans = self._compiled_jieba(codes) if self._compiled_jieba else None
        elif kind == SPACES:
            from pipelines.quality.compiled.words import words_at_spaces  # noqa: PLC0415  numba

            spans = words_at_spaces(codes)
        elif self._compiled_english:
            spans = self._compiled_english.spans(text, codes)
        return spans

    def num_sentences(self, lines: Iterable[str]) -> int:
        """Return the number of English sentences in lines by spaCy's rules, as in datatrove."""
        num_sentences: int = self._any_english.num_sentences(lines)
        return num_sentences

    def _chinese_words(self, text: str) -> list[str]:
        if self._compiled_jieba is not None:
            return self._compiled_jieba(code_points(text)).of(text)
        return [word for word in map(str.strip, self._jieba.cut(text)) if word]

    @cached_property
    def _jieba(self) -> Any:
        return chinese_words.load_jieba()

    @cached_property
    def _compiled_jieba(self) -> Cut | None:
        return chinese_words.load_compiled()

    @cached_property
    def _english(self) -> english.English:
        return english.English()

    @cached_property
    def _compiled_english(self) -> Any:
        return _compiled_english(self._english)

    @property
    def _any_english(self) -> Any:
        return self._compiled_english or self._english


class OwnSplitters(Splitters):
    """A splitter of one's own for the words of a language, and what sentences are in English."""

    own = True

    def __init__(self, split: Callable[[str], list[str]], others: Splitters) -> None:
        """Make it.

        Args:
            split: Returns the words of a text, none empty or with white space at its ends.
            others: What knows about sentences.
        """
        self._split = split
        self._others = others

    def words(self, text: str, **_: Any) -> list[str]:
        """Return the words of a text, whatever its language is thought to be."""
        return self._split(text)

    def spans(self, *_: Any, **__: Any) -> WordSpans | None:
        """Return nothing: only words() has them."""
        return None

    def num_sentences(self, lines: Iterable[str]) -> int:
        """Return the number of English sentences in lines by spaCy's rules."""
        return self._others.num_sentences(lines)


class MeasuredText:
    """A text on its way through the profiles; its words are split once."""

    __slots__ = ("_codes", "_counts", "_spans", "_words", "language", "splitters", "text")

    def __init__(
        self,
        text: str,
        language: str,
        *,
        splitters: Splitters,
        num_words: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.text = text
        self.language = language
        self.splitters = splitters
        self._counts = {} if splitters.own else num_words
        self._words: dict[str, list[str]] = {}
        self._codes: npt.NDArray[np.uint32] | None = None
        self._spans: dict[str, WordSpans] = {}

    @property
    def codes(self) -> npt.NDArray[np.uint32]:
        """Its code points, uint32[n]."""
        if self._codes is None:
            self._codes = code_points(self.text)
        return self._codes

    def words(self, kind: str) -> list[str]:
        """Return its words; kind is SPACES or DATATROVE."""
        kind = self._kind(kind)
        if kind not in self._words:
            words = self.splitters.words(self.text, language=self.language, kind=kind)
            self._words[kind] = words
        return self._words[kind]

    def spans(self, kind: str) -> WordSpans:
        """Return what words() does, as ranges of code points."""
        kind = self._kind(kind)
        if kind not in self._spans:
            spans = self.splitters.spans(self.text, self.codes, language=self.language, kind=kind)
            self._spans[kind] = spans or _joined(self.words(kind))
        return self._spans[kind]

    def num_words(self, kind: str) -> int:
        """Return how many words spans() has."""
        known = self._counts.get(self._kind(kind))
        return len(self.spans(kind).starts) if known is None else known

    def _kind(self, kind: str) -> str:
        """Return the kind that words are kept as: one where all kinds are the same."""
        return SPACES if self.splitters.own or self.language in CHINESE else kind

    def own_spans(self) -> Iterator[tuple[str, WordSpans]]:
        """Yield the kinds of words found so far, as ranges of the code points of this text."""
        for kind, spans in self._spans.items():
            if spans.codes is self._codes:
                yield kind, spans

    def replaced(
        self, text: str, *, num_words: Mapping[str, int] = MappingProxyType({})
    ) -> "MeasuredText":
        """Return another text in place of this one, in the same language.

        Args:
            text: The other text.
            num_words: How many words it has, by kind, as far as that is known.
        """
        return MeasuredText(text, self.language, splitters=self.splitters, num_words=num_words)


def _joined(words: list[str]) -> WordSpans:
    """Return words as ranges of their code points back to back."""
    ends = np.cumsum(np.fromiter(map(len, words), np.int64, len(words)))
    starts = np.concatenate(([0], ends[:-1])) if len(words) else ends
    return WordSpans(code_points("".join(words)), starts, ends)


def engine_version(name: str) -> str:
    """Return a library and its version, such as "jieba 0.42.1".

    Raises:
        importlib.metadata.PackageNotFoundError: it is not installed.
    """
    return f"{name} {importlib.metadata.version(name)}"


def _compiled_english(plain: english.English) -> Any:
    """Return the CompiledEnglish of an English; None, with a warning, if it may not be used."""
    rules = plain.rules
    if rules is None:
        return None

    def make() -> Any:
        from pipelines.quality.compiled.english import CompiledEnglish  # noqa: PLC0415  numba

        return CompiledEnglish(plain, rules)

    def differs(compiled: Any) -> str | None:
        spans = ((text, compiled.spans(text, code_points(text))) for text in english.SAMPLES)
        different = (
            text for text, found in spans if found is None or found.of(text) != plain.words(text)
        )
        return next((f"it splits {text!r} otherwise" for text in different), None)

    name = "Compiled code for English words"
    return proven(name, make, differs, plain=None, part="English words")
