"""Batches of texts that profiles measure, and single texts for custom profiles."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.quality.spans import Spans, texts_as_spans
from pipelines.quality.words import WordLibraries, WordSplitter

Column = npt.NDArray[Any]
"""A number for each text, an integer or a float."""


class TextBatch:
    """Texts whose words are found in the same way; each kind of words is found only once."""

    def __init__(
        self,
        strings: Sequence[str],
        languages: Sequence[str],
        splitters: Mapping[str, WordSplitter],
        libraries: WordLibraries,
    ) -> None:
        """Make a batch.

        Args:
            strings: The texts.
            languages: The labels of the texts' languages, as in lid.176.
            splitters: The functions that find words, by kind: SPACES or DATATROVE.
            libraries: The libraries of this process.
        """
        self.strings = strings
        self.languages = languages
        self.libraries = libraries
        self._splitters = splitters
        self._words: dict[WordSplitter, Spans] = {}

    @cached_property
    def texts(self) -> Spans:
        """The texts as ranges of characters."""
        return texts_as_spans(self.strings)

    def words(self, kind: str) -> Spans:
        """Return the words of the texts; kind is SPACES or DATATROVE."""
        splitter = self._splitters[kind]
        if splitter not in self._words:
            self._words[splitter] = splitter(self.texts)
        return self._words[splitter]

    def num_words(self, kind: str) -> npt.NDArray[np.int64]:
        """Return the number of words of each text; words between spaces are counted, not stored."""
        if self._splitters[kind] is Spans.words and self.known_words(kind) is None:
            return self.texts.num_words()
        return self.words(kind).counts

    def known_words(self, kind: str) -> Spans | None:
        """Return the words of the texts, or None if they have not been found yet."""
        return self._words.get(self._splitters[kind])

    def split(self, texts: Spans, kind: str) -> Spans:
        """Return the words of texts that are not in the batch but in the same languages."""
        return self._splitters[kind](texts)

    def with_texts(
        self,
        strings: Sequence[str],
        texts: Spans | None = None,
        words: Mapping[str, Spans] = MappingProxyType({}),
    ) -> "TextBatch":
        """Return a batch of new texts in the same languages.

        Args:
            strings: The new texts.
            texts: The same texts as ranges, if they are known.
            words: The words of the new texts by kind, as far as they are known.
        """
        batch = TextBatch(strings, self.languages, self._splitters, self.libraries)
        batch._words = {self._splitters[kind]: spans for kind, spans in words.items()}
        if texts is not None:
            batch.texts = texts
        return batch

    def with_text(self, text: str, at: int) -> "TextBatch":
        """Return a batch of one text, in the language of the text with index `at`."""
        return TextBatch([text], self.languages[at : at + 1], self._splitters, self.libraries)


class MeasuredText:
    """A text as a custom profile measures it."""

    def __init__(self, batch: TextBatch, at: int) -> None:
        """Make the text with index `at` of a batch."""
        self.text = batch.strings[at]
        self.language = batch.languages[at]
        """The label of the text's language, as in lid.176."""
        self._batch, self._at = batch, at

    def words(self, kind: str) -> list[str]:
        """Return the words of the text; kind is SPACES or DATATROVE."""
        words = self._batch.words(kind)
        own = slice(*words.offsets[self._at : self._at + 2].tolist())
        return Spans(words.characters, words.starts[own], words.ends[own], words.offsets).strings()

    def replaced(self, text: str) -> "MeasuredText":
        """Return the measured text of a new string in the same language."""
        return MeasuredText(self._batch.with_text(text, self._at), 0)
