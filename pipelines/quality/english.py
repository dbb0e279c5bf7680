"""English words and sentences by spaCy's rules, remembered by chunk.

spaCy's tokenizer cuts a text at its white space into chunks, splits each chunk by its rules, and
then looks for special cases over all tokens of the text:

    text      (Thanks:) Don't mention  it.
    chunks    (Thanks:)     Don't    mention   it.
    split     ( Thanks : )  Do n't   mention   it .         a special case is a whole chunk, or
    merged    ( Thanks :)   Do n't   mention   it .         what is left of one within affixes

The first step looks at nothing but the chunk, so its tokens can be remembered. The last one, a
PhraseMatcher, finds every run of tokens that some special cases are split into by the affix rules
alone (their *phrases*: `:` `)` is one), spaces between the tokens or not. Of the runs that overlap
the longest is taken, and it is replaced by its special case if the text of the run is one. So the
tokens of a chunk depend on other chunks only if

1. a run that crosses its border is replaced: never, for the text of such a run holds white space,
   and the only special cases with white space are single characters of it (checked at the start);
2. a run inside the chunk is replaced, or would be but for a run that crosses its border and takes
   its place (the longer one wins, even where it is then found to be no special case).

A chunk with a run of the second kind is called *loose*. A run that crosses a border has the tokens
on both sides of it next to each other, so a text is left to spaCy as a whole where a loose chunk
has a neighbour with which it makes a pair of tokens that stands in some phrase; this is rare. All
other chunks have the tokens that they have alone. White space makes tokens too, but none that is in
a phrase of several tokens, and they are no words.

Sentences follow from the tokens: by spaCy's sentencizer one begins with the first token that is
neither an end mark nor other punctuation after an end mark.
"""

import importlib
import itertools
import re
import string
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from pipelines.compiled import proven

# spaCy takes this word for a symbol of its own and, from its second occurrence on, fails on an
# assertion; datatrove 0.10.1 (utils/word_tokenizers.py) removes it when that happens.
_POISON = "IS_ALPHA"

_MOST_BYTES = 1 << 26
"""Size at which all chunks are forgotten, at 300 bytes for a chunk and 2 for each character."""

# What spaCy's affixes say of ASCII, where it can be said without its regular expressions, which
# take microseconds.
QUOTES = frozenset("\"'`,")
"""Quotation marks of ASCII; spaCy has a comma among them."""
MARKS = QUOTES | frozenset(";:!?()[]{}<>_#*&")
"""Characters of ASCII that are a suffix by themselves, and end no longer one."""
PREFIXES = MARKS | frozenset("%=$")
"""Those that are a prefix by themselves, and begin no longer one."""
DOTTED = MARKS | frozenset("%-+|" + string.digits + string.ascii_lowercase)
"""Those after which a full stop is a suffix; after others it is one if there are several."""
_NO_PREFIXES = frozenset("-\\/|@~^" + string.digits + string.ascii_letters) - frozenset("ACU")
_NO_SUFFIXES = frozenset("-\\/|@~^=" + string.digits)
_INFIX = re.compile(r"[.+\-*^,:<>=/~]")
_DIGIT = re.compile("[0-9]")
_UNIT_CHARS = 4
ASCII_UNITS = (  # noqa: SIM905  more readable
    "km m dm cm mm ha nm yd in ft kg g mg t lb oz m/s km/h kmh mph hPa Pa mbar mb MB kb KB gb GB "
    "tb TB T G M K %"
).split()
"""Units that are a suffix after a digit, as far as they are ASCII."""

_LATEST_CHUNKS = 1 << 14

_RUNS = re.compile(r"\s+|\S+")


class Chunk(NamedTuple):
    """A run of characters without white space, as the rules split it."""

    words: tuple[str, ...]
    """Its tokens in a text in which no other chunk has a say."""
    tokens: tuple[str, ...]
    """Its tokens before special cases are looked for among them."""
    loose: bool
    """Whether other chunks can change its words."""


class Marks(NamedTuple):
    """What sentences need to know of a chunk: marks are tokens that end one, words begin one."""

    begun: int
    """Sentences that begin inside it: at words that follow a mark of its own."""
    opens: bool
    """Whether a word is its first token that is a mark or a word."""
    closes: bool | None
    """Whether a mark is its last token that is a mark or a word; None if it has neither."""


class Spacy:
    """spaCy itself: what all others must equal, and what they ask when in doubt."""

    def words(self, text: str) -> list[str]:
        """Return the words of a text, none empty or with white space at its ends."""
        with self.pipeline.memory_zone():
            words = [token.text.strip() for token in self.pipeline.tokenizer(readable(text))]
        return [word for word in words if word]

    def num_sentences(self, lines: Iterable[str]) -> int:
        """Return the number of sentences in lines, counted line by line."""
        # One zone for all lines, at whose end spaCy forgets the words it has seen.
        with self.pipeline.memory_zone():
            documents = map(self.pipeline, map(readable, lines))
            return sum(len(list(document.sents)) for document in documents)

    @cached_property
    def pipeline(self) -> Any:
        """Its English rules, which take a second to load."""
        spacy = importlib.import_module("spacy")
        english = spacy.blank("en")
        english.add_pipe("sentencizer")
        english.max_length = 1 << 40
        return english


class English:
    """Words and sentences, remembered by chunk."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self.spacy = Spacy()

    def words(self, text: str) -> list[str]:
        """Return the words of a text, as Spacy does."""
        if self.rules is None:
            return self.spacy.words(text)
        self._make_room()
        text = readable(text)
        chunks = text.split()
        words = list(itertools.chain.from_iterable(map(self._words.__getitem__, chunks)))
        return self._in_pieces(text) if self._unsure(chunks, text) else words

    def num_sentences(self, lines: Iterable[str]) -> int:
        """Return the number of sentences in lines, as Spacy does."""
        if self.rules is None:
            return self.spacy.num_sentences(lines)
        self._make_room()
        return sum(map(self._num_sentences, map(readable, lines)))

    @cached_property
    def rules(self) -> "Rules | None":
        """How to split a chunk; None if that is only known to spaCy."""
        return find_rules(self.spacy)

    @cached_property
    def _words(self) -> "_Words":
        assert self.rules is not None
        return _Words(self.rules)

    @cached_property
    def _marks(self) -> "_Marks":
        assert self.rules is not None
        return _Marks(self.rules, self._words)

    def _make_room(self) -> None:
        # Between texts: while one is split, its loose chunks are needed.
        if self._words.num_bytes > _MOST_BYTES:
            self._words.clear()
            self._marks.clear()
            self._words.loose.clear()
            self._words.num_bytes = 0

    def _num_sentences(self, line: str) -> int:
        chunks = line.split()
        if " ".join(chunks) != line:
            chunks = split_with_space(line)
        num_sentences, after_mark = int(bool(line)), False
        for begun, opens, closes in map(self._marks.__getitem__, chunks):
            num_sentences += begun + (after_mark and opens)
            if closes is not None:
                after_mark = closes
        return self.spacy.num_sentences([line]) if self._unsure(chunks, line) else num_sentences

    def _in_pieces(self, text: str) -> list[str]:
        """Return the words of a text, and ask spaCy for runs of chunks that it must see together.

        A run is a loose chunk with all that phrases across borders link it to: one that is not
        replaced may still keep the next one away.
        """
        assert self.rules is not None
        chunks = split_with_space(text)
        words: list[str] = []
        done = 0
        for index, chunk in enumerate(chunks):
            if index < done or chunk not in self._words.loose:
                continue
            first, end = index, index + 1
            while first > done and self.rules.crossed(chunks, first):
                first -= 1
            while end < len(chunks) and self.rules.crossed(chunks, end):
                end += 1
            if end - first > 1:
                words += self._apart(chunks[done:first])
                words += self.spacy.words(" ".join(chunks[first:end]))
                done = end
        return words + self._apart(chunks[done:])

    def _apart(self, chunks: Iterable[str]) -> list[str]:
        """Return the words of chunks that have no say in each other's, and of white space: none."""
        every = (self._words[chunk] for chunk in chunks if not chunk.isspace())
        return list(itertools.chain.from_iterable(every))

    def _unsure(self, chunks: Sequence[str], text: str) -> bool:
        """Return whether chunks of a text may change each other's words."""
        loose = self._words.loose
        if loose.isdisjoint(chunks):
            return False
        assert self.rules is not None
        chunks = split_with_space(text)
        return any(
            self.rules.crossed(chunks, index)
            for index in range(1, len(chunks))
            if chunks[index - 1] in loose or chunks[index] in loose
        )


class Rules:
    """spaCy's rules for a chunk, in Python: its regular expressions, without its overhead."""

    def __init__(self, spacy: Spacy) -> None:
        """Take the rules of a pipeline.

        Raises:
            ValueError: they are not of the kind that can be applied chunk by chunk.
        """
        tokenizer = spacy.pipeline.tokenizer
        self._prefix, self._suffix = tokenizer.prefix_search, tokenizer.suffix_search
        self._infixes, self._url = tokenizer.infix_finditer, tokenizer.url_match
        self.specials = _specials(spacy)
        if tokenizer.token_match is not None or not tokenizer.faster_heuristics:
            raise ValueError("spaCy has other rules for English")
        if any(len(text) > 1 and len(text.split()) != 1 for text in self.specials):
            raise ValueError("a special case has white space in it")
        phrases = _phrases(tokenizer, self.specials)
        self._phrases = frozenset(phrases.values())
        self._longest = max(map(len, self._phrases))
        self.pairs = frozenset(
            pair for phrase in self._phrases for pair in itertools.pairwise(phrase)
        )
        """Tokens that stand next to each other in phrases."""
        # Phrases of one token equal their special cases: they change nothing.
        self.replaced = frozenset(
            phrase[:2] for text, phrase in phrases.items() if phrase != self.specials[text]
        )
        """First two tokens of the phrases whose special cases have other tokens."""
        if any(len(start) < 2 for start in self.replaced):  # noqa: PLR2004  a pair
            raise ValueError("a special case replaces a single token")
        if any(text.isascii() and self._is_loose(self.specials[text]) for text in self.specials):
            raise ValueError("a special case holds another one")
        sentencizer = spacy.pipeline.get_pipe("sentencizer")
        self._ends = frozenset(sentencizer.punct_chars)
        symbols = importlib.import_module("spacy.attrs")
        self.is_punctuation = spacy.pipeline.vocab.lex_attr_getters[symbols.IS_PUNCT]
        """Whether a token is made of punctuation."""

    @cached_property
    def chunk(self) -> Callable[[str], Chunk]:
        """Return what becomes of a chunk: one character or more, none of them white space.

        The same chunks are asked for by tables and when borders are looked at, so the latest are
        remembered.

        Raises:
            UnicodeEncodeError: it has a lone surrogate.
        """
        return lru_cache(maxsize=_LATEST_CHUNKS)(self._chunk)

    def _chunk(self, text: str) -> Chunk:
        if not text.isascii():
            text.encode()  # fails as spaCy does
        words = self.specials.get(text) or self._simple(text) or self._split(text)
        if self._is_loose(words):
            return Chunk(self._merged(words), words, loose=True)
        return Chunk(words, words, loose=False)

    def _is_loose(self, tokens: Sequence[str]) -> bool:
        return len(tokens) > 1 and not self.replaced.isdisjoint(itertools.pairwise(tokens))

    def _merged(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        """Return tokens after special cases have been put in the place of phrases."""
        # Tokenizer._filter_special_spans: the longest first, then the first; what was passed over
        # keeps others away as well.
        taken: dict[int, int] = {}
        seen: set[int] = set()
        for length in range(min(self._longest, len(tokens)), 1, -1):
            for start in range(len(tokens) - length + 1):
                if tokens[start : start + length] in self._phrases:
                    if start not in seen and start + length - 1 not in seen:
                        taken[start] = length
                    seen.update(range(start, start + length))
        merged: list[str] = []
        start = 0
        while start < len(tokens):
            length = taken.get(start, 1)
            text = "".join(tokens[start : start + length])
            merged += self.specials[text] if length > 1 else (text,)
            start += length
        return tuple(merged)

    def crossed(self, chunks: Sequence[str], index: int) -> bool:
        """Return whether a phrase crosses the border before a chunk.

        Args:
            chunks: The chunks of a text, with white space where it is a token.
            index: 1 or more.
        """
        left, right = chunks[index - 1], chunks[index]
        if left.isspace() or right.isspace():
            return False
        if (self.chunk(left).tokens[-1], self.chunk(right).tokens[0]) not in self.pairs:
            return False
        before = self._tokens(reversed(chunks[max(index - self._longest, 0) : index]), order=-1)
        after = self._tokens(chunks[index : index + self._longest], order=1)
        return any(
            (*before[-size:], *after[: length - size]) in self._phrases
            for length in range(2, self._longest + 1)
            for size in range(1, length)
        )

    def _tokens(self, chunks: Iterable[str], *, order: int) -> list[str]:
        """Return the tokens of chunks up to the first white space; order -1: all turned round."""
        words = itertools.takewhile(lambda chunk: not chunk.isspace(), chunks)
        tokens = [token for chunk in words for token in self.chunk(chunk).tokens[::order]]
        return tokens[::order]

    def marks(self, words: Iterable[str]) -> Marks:
        """Return what sentences need to know of tokens that follow each other."""
        begun, opens, closes = 0, False, None
        for word in words:
            if self.is_end(word):
                closes = True
            elif not self.is_punctuation(word):
                begun += closes is True
                opens = opens or closes is None
                closes = False
        return Marks(begun, opens, closes)

    def is_end(self, token: str) -> bool:
        """Return whether a token ends a sentence."""
        return token in self._ends

    def _split(self, text: str) -> tuple[str, ...]:
        # Tokenizer._split_affixes and _attach_tokens of spaCy 3.8, statement by statement.
        specials = self.specials
        prefixes, suffixes = [], []
        last_size = 0
        while text and len(text) != last_size and text not in specials:
            last_size = len(text)
            prefix = self._prefix_chars(text)
            if prefix and text[prefix:] in specials:
                prefixes.append(text[:prefix])
                text = text[prefix:]
                break
            suffix = self._suffix_chars(text[prefix:])
            if suffix and text[:-suffix] in specials:
                suffixes.append(text[-suffix:])
                text = text[:-suffix]
                break
            if prefix:
                prefixes.append(text[:prefix])
            # Never do both overlap: the suffix was looked for in what follows the prefix.
            if suffix:
                suffixes.append(text[-suffix:])
            text = text[prefix : len(text) - suffix]
        middle = self.specials.get(text) or self._middle(text)
        return (*prefixes, *middle, *reversed(suffixes))

    def _middle(self, text: str) -> list[str]:
        # Of what has no infix it does not matter whether it is an address.
        if text.isascii() and not _INFIX.search(text):
            return [text] if text else []
        infixes = list(self._infixes(text))
        if not infixes or self._url(text):
            return [text]
        words: list[str] = []
        start = 0
        for infix in infixes:
            if infix.start() == 0:
                continue
            words += text[start : infix.start()], infix.group()
            start = infix.end()
        words.append(text[start:])
        return [word for word in words if word]

    def _simple(self, text: str) -> tuple[str, ...]:
        """Return the tokens of letters, with or without a mark behind them; () if it is not that.

        The text is no special case. Nothing about letters of ASCII is an affix.
        """
        if not text.isascii():
            return ()
        if text.isalpha():
            return (text,)
        start, last = text[:-1], text[-1]
        if start.isalpha() and (last in MARKS or (last == "." and start[-1].islower())):
            return (*self.specials.get(start, (start,)), last)
        return ()

    def _prefix_chars(self, text: str) -> int:
        """Return the number of characters of the prefix."""
        first = text[0]
        if first in PREFIXES:
            return 1
        if first in _NO_PREFIXES or (first in "ACU" and "$" not in text[1:3]):
            return 0
        found = self._prefix(text)
        return found.end() - found.start() if found else 0

    def _suffix_chars(self, text: str) -> int:
        """Return the number of characters of the suffix."""
        last = text[-1:]
        if last in MARKS:
            return 1
        if text.isascii() and (known := _ascii_suffix_chars(text, last)) is not None:
            return known
        found = self._suffix(text)
        return found.end() - found.start() if found else 0


def _ascii_suffix_chars(text: str, last: str) -> int | None:
    """Return the number of characters of the suffix of a text in ASCII, None if unsure."""
    if last in _NO_SUFFIXES or not last:
        return 0
    before = text[-2:-1]
    if last == "." and before in DOTTED:
        return 1
    # Letters end units, which follow a digit, and 's.
    if last.isalpha() and before != "'" and not _DIGIT.search(text, len(text) - 1 - _UNIT_CHARS):
        return 0
    return None


class _Words(dict[str, tuple[str, ...]]):
    """The words of chunks, worked out when first asked for."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.num_bytes = 0
        self.loose: set[str] = set()
        """The chunks among them that are loose."""
        self._rules = rules

    def __missing__(self, text: str) -> tuple[str, ...]:
        self.num_bytes += 300 + 2 * len(text)
        chunk = self._rules.chunk(text)
        if chunk.loose:
            self.loose.add(text)
        self[text] = chunk.words
        return chunk.words


class _Marks(dict[str, Marks]):
    """The marks of chunks, and of white space, worked out when first asked for."""

    def __init__(self, rules: Rules, words: _Words) -> None:
        super().__init__()
        self._rules = rules
        self._words = words

    def __missing__(self, text: str) -> Marks:
        self[text] = self._rules.marks((text,) if text.isspace() else self._words[text])
        return self[text]


def readable(text: str) -> str:
    """Return a text without the word that spaCy cannot read."""
    return text.replace(_POISON, "")


def find_rules(spacy: Spacy) -> Rules | None:
    """Return the rules for chunks; None, with a warning, if they do not give spaCy's words."""

    def differs(rules: Rules) -> str | None:
        different = (text for text in SAMPLES if rules.chunk(text).words != (*spacy.words(text),))
        return next((f"it splits {text!r} otherwise" for text in different), None)

    return proven(
        "A memory of English words",
        lambda: Rules(spacy),
        differs,
        plain=None,
        instead="spaCy, which is slow,",
    )


def split_with_space(text: str) -> list[str]:
    """Return the chunks of a text and the white space that is a token of spaCy's."""
    runs = _RUNS.findall(text)
    # The first of several white characters is the space after a word, if it is a space.
    runs[1:] = [run[1:] if run[0] == " " else run for run in runs[1:]]
    return [run for run in runs if run]


def _specials(spacy: Spacy) -> dict[str, tuple[str, ...]]:
    """Return the special cases by their text, and the tokens they are made of."""
    orth = importlib.import_module("spacy.symbols").ORTH
    return {
        text: tuple(token[orth] for token in tokens)
        for text, tokens in spacy.pipeline.tokenizer.rules.items()
    }


def _phrases(tokenizer: Any, specials: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return what the PhraseMatcher looks for: special cases as the other rules split them."""
    kind = importlib.import_module("spacy.tokenizer").Tokenizer
    plain = kind(
        tokenizer.vocab,
        prefix_search=tokenizer.prefix_search,
        suffix_search=tokenizer.suffix_search,
        infix_finditer=tokenizer.infix_finditer,
        url_match=tokenizer.url_match,
    )
    finders = tokenizer.find_prefix, tokenizer.find_infix, tokenizer.find_suffix
    return {
        text: tuple(token.text for token in plain(text))
        for text in specials
        if any(find(text) for find in finders) or " " in text
    }


SAMPLES = tuple(
    """
    word Word's 'word' "Don't" (can't), it's. It’s they'll've U.S. U.S.A.) N.Y.), Mr. (Mrs.) a.m.
    10a.m. 7pm 5km 3.5kg, 100% $5.00 US$10 10US$ C$5, €20 20€ +5 5+ 1+2 1-2 3*4 2^-1 x=y a:b a/b/c
    and/or w/o e.g., i.e.: etc... ...and well…ok end.Next end."Next a,b 1,000 twenty-one co--op —so—
    :) (hello:) ):( '''Tis hi:-) ;-)) <3 8) 8-) http://www.example.com/a-b?c=d#e www.example.com.
    me@example.com #tag @name [1][2] {x} <b>bold</b> C++ C++, \\n °C. 20°C. 5°F AT&T R&D [...]
    naïve café. Zürich-Nord “Quoted,” ‘single’ ’tis 'em rock'n'roll O'Neil's 1960s '60s 1960's TB.
    你好。“你好！” ½kg 20° π≈3.14 ... ..
    """.split()  # noqa: SIM905  more readable
)
"""Chunks that break most rules; fast ways are tried on them before they are trusted."""
