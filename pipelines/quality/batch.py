"""Texts on their way through the profiles."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.quality.spans import Spans, texts_as_spans
from pipelines.quality.words import WordLibraries, WordSplitter

Column = npt.NDArray[Any]
"""A number by text, an integer or a float."""


class TextBatch:
    """Texts whose words are found in the same way; each kind of words is found once."""

    def __init__(
        self,
        strings: Sequence[str],
        languages: Sequence[str],
        splits: Mapping[str, WordSplitter],
        libraries: WordLibraries,
    ) -> None:
        """Take the texts.

        Args:
            strings: The texts.
            languages: Their labels of lid.176.
            splits: The functions that find their words, by the way to count them.
            libraries: Those of this process.
        """
        self.strings = strings
        self.languages = languages
        self.libraries = libraries
        self._splits = splits
        self._words: dict[WordSplitter, Spans] = {}

    @cached_property
    def texts(self) -> Spans:
        """The texts as ranges of characters."""
        return texts_as_spans(self.strings)

    def words(self, kind: str) -> Spans:
        """Return the words of the texts; kind is SPACES or DATATROVE."""
        split = self._splits[kind]
        if split not in self._words:
            self._words[split] = split(self.texts)
        return self._words[split]

    def num_words(self, kind: str) -> npt.NDArray[np.int64]:
        """Return how many words the texts have; they are not kept if they are easy to find."""
        if self._splits[kind] is Spans.words and self.known_words(kind) is None:
            return self.texts.num_words()
        return self.words(kind).counts

    def known_words(self, kind: str) -> Spans | None:
        """Return the words of the texts if they have been found."""
        return self._words.get(self._splits[kind])

    def split(self, texts: Spans, kind: str) -> Spans:
        """Return the words of other texts of the same languages."""
        return self._splits[kind](texts)

    def replaced(
        self,
        strings: Sequence[str],
        texts: Spans | None = None,
        words: Mapping[str, Spans] = MappingProxyType({}),
    ) -> "TextBatch":
        """Return other texts instead of these.

        Args:
            strings: The texts, those that stay among them.
            texts: The same as ranges, if they are at hand.
            words: Their words, as far as they are known.
        """
        batch = TextBatch(strings, self.languages, self._splits, self.libraries)
        batch._words = {self._splits[kind]: spans for kind, spans in words.items()}
        if texts is not None:
            batch.texts = texts
        return batch

    def alone(self, text: str, at: int) -> "TextBatch":
        """Return a batch of one text, which replaces the one with this number."""
        return TextBatch([text], self.languages[at : at + 1], self._splits, self.libraries)


class MeasuredText:
    """A text on its way through the profiles, for a profile of the user's."""

    def __init__(self, batch: TextBatch, at: int) -> None:
        """Take the text with this number in a batch."""
        self.text = batch.strings[at]
        self.language = batch.languages[at]
        """Its label of lid.176."""
        self._batch, self._at = batch, at

    def words(self, kind: str) -> list[str]:
        """Return its words; kind is SPACES or DATATROVE."""
        words = self._batch.words(kind)
        own = slice(*words.offsets[self._at : self._at + 2].tolist())
        return Spans(words.characters, words.starts[own], words.ends[own], words.offsets).strings()

    def replaced(self, text: str) -> "MeasuredText":
        """Return another text instead of this one, in the same language."""
        return MeasuredText(self._batch.alone(text, self._at), 0)
