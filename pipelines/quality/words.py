"""Finds the words of texts in the way that each profile counts words.

Words are separated by white space, or found by jieba's accurate mode (Chinese) or by spaCy's
English rules, which datatrove uses. jieba and spaCy are loaded when they are first used.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from pipelines.quality.jieba_words import JiebaWords
from pipelines.quality.spacy_words import SpacyWords
from pipelines.quality.spans import Places, Spans, words_as_spans

CHINESE = frozenset({"zh", "yue", "wuu"})
"""The languages (labels of lid.176) that jieba splits into words, as in datatrove."""

UNSPACED = CHINESE | {"bo", "ja", "km", "lo", "my", "th"}
"""The languages that are written without spaces between words."""

ENGLISH = "en"

SPACES, DATATROVE = "spaces", "datatrove"
"""The kinds of words: those of str.split(), or those of spaCy; in Chinese, both are jieba's."""

WordSplitter = Callable[[Spans], Spans]
"""Maps texts to their words, which are stripped of white space and not empty."""


class WordLibraries:
    """The libraries that find words; a process loads each one when it is first used."""

    @cached_property
    def _jieba(self) -> JiebaWords:
        return JiebaWords()

    @cached_property
    def _spacy(self) -> SpacyWords:
        return SpacyWords()

    def chinese_words(self, texts: Spans) -> Spans:
        """Return the words that jieba finds in Chinese texts."""
        return self._jieba.words(texts)

    def english_words(self, texts: Spans) -> Spans:
        """Return the words of English texts according to spaCy's rules."""
        return self._spacy.words(texts)

    def num_sentences(self, lines: Sequence[str]) -> Places:
        """Return the number of sentences in each line according to spaCy's rules for English."""
        return self._spacy.num_sentences(lines)


def word_splitters(
    language: str, libraries: WordLibraries, custom: Callable[[str], list[str]] | None = None
) -> Mapping[str, WordSplitter]:
    """Return the functions that find the words of texts, by kind of words.

    Args:
        language: The label of lid.176.
        libraries: The libraries of this process.
        custom: A custom word splitter, which finds the words of all kinds.
    """
    if custom is not None:
        return dict.fromkeys(
            (SPACES, DATATROVE), lambda texts: words_as_spans(map(custom, texts.strings()))
        )
    if language in CHINESE:
        return dict.fromkeys((SPACES, DATATROVE), libraries.chinese_words)
    return {SPACES: Spans.words, DATATROVE: libraries.english_words}
