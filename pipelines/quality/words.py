"""The words of texts, as each profile counts them.

There are three ways to find them: white space; jieba's accurate mode for Chinese; spaCy's English
rules, which datatrove uses. The last two are loaded when they are first used.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from pipelines.quality.jieba_words import JiebaWords
from pipelines.quality.spacy_words import SpacyWords
from pipelines.quality.spans import Places, Spans, words_as_spans

CHINESE = frozenset({"zh", "yue", "wuu"})
"""Languages (labels of lid.176) that jieba splits into words; datatrove has the same three."""

UNSPACED = CHINESE | {"bo", "ja", "km", "lo", "my", "th"}
"""Languages written without spaces between words."""

ENGLISH = "en"

SPACES, DATATROVE = "spaces", "datatrove"
"""Ways to count words: str.split() (jieba for Chinese); spaCy for English, jieba for Chinese."""

WordSplitter = Callable[[Spans], Spans]
"""From texts to their words, none of them empty or with white space at its ends."""


class WordLibraries:
    """The libraries that find words, loaded in this process when they are first used."""

    @cached_property
    def _jieba(self) -> JiebaWords:
        return JiebaWords()

    @cached_property
    def _spacy(self) -> SpacyWords:
        return SpacyWords()

    def chinese_words(self, texts: Spans) -> Spans:
        """Return the words of Chinese texts by jieba."""
        return self._jieba.words(texts)

    def english_words(self, texts: Spans) -> Spans:
        """Return the words of English texts by spaCy's rules."""
        return self._spacy.words(texts)

    def num_sentences(self, lines: Sequence[str]) -> Places:
        """Return the number of sentences in each line by spaCy's rules for English."""
        return self._spacy.num_sentences(lines)


def word_splitters(
    language: str, libraries: WordLibraries, own: Callable[[str], list[str]] | None = None
) -> Mapping[str, WordSplitter]:
    """Return the functions that find the words of texts, by the way to count them.

    Args:
        language: The label of lid.176.
        libraries: Those of this process.
        own: A splitter of the user's, which finds the words whatever the way.
    """
    if own is not None:
        return dict.fromkeys(
            (SPACES, DATATROVE), lambda texts: words_as_spans(map(own, texts.strings()))
        )
    if language in CHINESE:
        return dict.fromkeys((SPACES, DATATROVE), libraries.chinese_words)
    return {SPACES: Spans.words, DATATROVE: libraries.english_words}
