"""Random texts in several scripts and of all lengths, some of which copy earlier ones."""

import random
from dataclasses import dataclass, field

_SYLLABLES = (
    *("ka", "lo", "mi", "ter", "ban", "so", "ril", "den"),
    *("pu", "gan", "ve", "shor", "ti", "nal", "ro", "quem"),
)
_CHARACTERS = "山水田木火土金石日月风云雨雪花草鸟鱼牛马人手口心言门车舟书画琴棋春夏秋冬东西南北天地"
_OTHERS = "éüñçßøåαβγδжзийклアイウ가나다라😀🚀\u0301\u200d\U00020000ﬁ½“”…—、。！？"
_LITERAL = ("<|endoftext|>", "[MASK]", "[gMASK]", "<s></s>", "<0x0A>", "<n>", "{}", '"RECORDS": [')
PLANTED = "the quick brown foxes of nine harbours jump over thirteen lazy dogs at dawn"
"""Fourteen words that a benchmark contains."""
DIRTY = (
    *("cafÃ© au lait", "schÃ¶n", "&amp; &lt;b&gt;", "&eacute;t&eacute;", "bell\x07 here"),
    *("\x1b[31mred\x1b[0m", "\ufeffmark", "itâ€™s fine", "C1 \x85 here", "lossy \ufffd ï¿½"),
)
"""Damage that cleaning repairs, and texts that only look damaged."""


@dataclass
class Text:
    """A text and its family."""

    text: str
    family: int
    """The number of a group of texts that may be similar. Texts of different families have nothing
    in common, but a text of family -1 may be similar to any text."""


@dataclass
class Texts:
    """Generates texts, some of which repeat earlier ones."""

    rng: random.Random
    dirty: float = 0.1
    """The share of texts with damage that cleaning repairs."""
    copies: float = 0.25
    """The share of texts that are equal or similar to an earlier one."""
    disjoint: bool = True
    """Whether texts of different families have nothing in common, even with prompts."""
    planted: float = 0.0
    """The share of texts that contain the planted line."""
    made: list[Text] = field(default_factory=list)

    def next(self, *, min_chars: int = 0) -> Text:
        """Return a text of at least `min_chars` characters."""
        long = [text for text in self.made if len(text.text) >= min_chars]
        if long and self.rng.random() < self.copies:
            text = self._version(self.rng.choice(long))
        else:
            text = Text(self._new(min_chars), len(self.made) if self.disjoint else -1)
        self.made.append(text)
        return text

    def _new(self, min_chars: int) -> str:
        kind = self.rng.choices(
            ("words", "characters", "mixed", "odd", "tiny", "long", "lines"),
            (8, 8, 4, 3, 2, 1, 2),
        )[0]
        text = getattr(self, f"_{kind}")()
        while len(text) < min_chars:
            text += " " + self._words()
        if self.rng.random() < self.planted:
            text += self.rng.choice((" ", ". ", "\n")) + self.rng.choice((PLANTED, PLANTED.upper()))
        if self.rng.random() < self.dirty:
            at = self.rng.randrange(len(text) + 1)
            text = f"{text[:at]} {self.rng.choice(DIRTY)} {text[at:]}"
        return str(text)

    def _words(self) -> str:
        rng = self.rng
        sentences = []
        for _ in range(rng.randint(1, 6)):
            words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4))) for _ in range(9)]
            sentences.append(" ".join(words[: rng.randint(3, 9)]).capitalize() + rng.choice(".?!"))
        return " ".join(sentences)[:1200]

    def _characters(self) -> str:
        rng = self.rng
        return "".join(
            "".join(rng.choices(_CHARACTERS, k=rng.randint(5, 25))) + rng.choice("。！？，")
            for _ in range(rng.randint(1, 8))
        )

    def _mixed(self) -> str:
        return self._words() + self.rng.choice((" ", "\u3000", "\n")) + self._characters()

    def _odd(self) -> str:
        rng = self.rng
        odd = "".join(rng.choices(_OTHERS, k=rng.randint(3, 40)))
        return f"{self._tiny()} {odd} {rng.choice(_LITERAL)} {self._words()}"

    def _tiny(self) -> str:
        return f"{self.rng.choice(_SYLLABLES)}{self.rng.randrange(10**6)}"

    def _long(self) -> str:
        return " ".join(self._words() for _ in range(self.rng.randint(5, 25)))

    def _lines(self) -> str:
        breaks = ("\n", "\r\n", "\n\n", "\t", "  \n")
        return "".join(self._words() + self.rng.choice(breaks) for _ in range(4))

    def _version(self, of: Text) -> Text:
        """Return a copy of a text, perhaps with changed white space or one more word."""
        rng = self.rng
        kind = rng.choice(("copy", "spaces", "word"))
        text = of.text
        if kind == "spaces":
            text = rng.choice(("", " ", "\n\t")) + text.replace(" ", rng.choice(("  ", "\n", " ")))
            text += rng.choice(("", " ", "\r\n"))
        elif kind == "word" and len(text) > 40:
            at = rng.randrange(len(text))
            text = text[:at] + f" {self._tiny()} " + text[at:]
        return Text(text, of.family)
