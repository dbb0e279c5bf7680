"""English texts, each at the bound of one rule or one step beyond; no text breaks a second rule."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.golden.corpus_words import cut, line, plain, stretched, write_texts

_STOPS = ["the", "of"]
Named = Iterator[tuple[str, str]]


def english(folder: Path) -> None:
    """Write the texts for the rules as the papers give them."""
    texts = dict([*_repetition(), *_gopher(), *_c4(), *_line_lengths()])
    write_texts(folder / "english" / "english.jsonl", texts)


def english_lines(folder: Path) -> None:
    """Write the texts for FineWeb's and GLM's rules for runs that apply no other rules first."""
    write_texts(folder / "lines" / "lines.jsonl", dict([*_fineweb(), *_glm()]))


def english_code(folder: Path) -> None:
    """Write the texts for the bounds in which datatrove's code differs from the papers."""
    write_texts(folder / "code" / "code.jsonl", dict([*_code_c4(), *_code_fineweb()]))


def _good(count: int, letters: int = 0) -> list[str]:
    """Return words with a total of `letters` letters; no pair repeats, and two are stop words."""
    words = plain(count - 2)
    return [*_STOPS, *(stretched(words, letters - 5) if letters else words)]


def _rows(words: Sequence[str], count: int) -> list[str]:
    return [line(row) for row in cut(words, -(-len(words) // count))]


# Repetition: shares of the lines, of the characters in lines, and of the letters in words.


def _repetition() -> Named:
    for name, separator in (("paragraph", "\n\n"), ("line", "\n")):
        for copies in (3, 4):
            yield f"gopher-repetition.dup_{name} {copies} of 10", _copies(copies, separator)
        for total in (400, 399):
            name_of = f"gopher-repetition.dup_{name}_chars 80 of {total}"
            yield name_of, _copied_letters(total, separator)
    for size, letters in ((2, 20), (3, 18), (4, 16)):
        yield from _grams(f"top_{size}gram", size, letters, 8)
    for size in range(5, 11):
        yield from _grams(f"dup_{size}gram", size, (20 - size) * 4, 2)
    yield "gopher-repetition.dup_line but for spaces around it", _spaced_copies()


def _copies(copies: int, separator: str) -> str:
    """Return ten parts, of which `copies` repeat an earlier part: one word."""
    parts = _rows(_good(120), 9 - copies)
    for copy in range(copies + 1):
        parts.insert(2 * copy, "ship.")
    return separator.join(parts)


def _spaced_copies() -> str:
    parts = _rows(_good(120), 5)
    for copy in range(5):
        parts.insert(2 * copy, " " * copy + "ship." + " " * (copy % 2))
    return "\n".join(parts)


def _copied_letters(total: int, separator: str) -> str:
    """Return parts with `total` characters in all, 80 of them in two copies of a word."""
    word = "extra" * 8
    parts = _rows(_good(60, total - 3 * len(word) - 54), 6)
    for copy in range(3):
        parts.insert(2 * copy + 1, word)
    return separator.join(parts)


def _grams(metric: str, size: int, letters: int, times: int) -> Named:
    """Yield texts of 800 and 799 letters in which a run of words repeats."""
    gram = stretched([f"{'xyz'[n % 3]}{'aeiou'[n % 5]}" for n in range(size)], letters)
    for total in (800, 799):
        others = cut(_good(126, total - letters * times), 126 // (times + 1))
        rows = [line(others[0]), *(line([*gram, *row]) for row in others[1:])]
        yield f"gopher-repetition.{metric} {letters * times} of {total}", "\n".join(rows)


# Gopher.


def _gopher() -> Named:
    for count in (50, 49):
        yield f"gopher.words {count}", _text(_good(count))
    for letters in (180, 179, 600, 601):
        yield f"gopher.word_length {letters} of 60", _text(_good(60, letters))
    for count in (6, 7):
        yield f"gopher.hashes {count} of 60", _text(_marked(count, "#{}"))
        yield f"gopher.ellipses {count} of 60", _text(_marked(count, "{}..."))
        yield f"gopher.ellipses {count} of 60 in one character", _text(_marked(count, "{}…"))
    for count in (9, 10):
        yield f"gopher.bullet_lines {count} of 10", _bulleted(count)
    for count in (3, 4):
        yield f"gopher.ellipsis_lines {count} of 10", _trailing(count)
    for count in (48, 47):
        yield f"gopher.alphabetic_words {count} of 60", _text(_numbered(60 - count))
    yield from _stop_words()


def _text(words: Sequence[str], each: int = 10) -> str:
    return "\n".join(map(line, cut(words, each)))


def _marked(count: int, form: str) -> list[str]:
    """Return 60 words; `count` of them have a mark, but none at the end of a line."""
    words = _good(60)
    for place in range(count):
        words[8 * place + 2] = form.format(words[8 * place + 2])
    return words


def _bulleted(count: int) -> str:
    rows = _rows(_good(100), 10)
    marks = ("• ", "- ", "* ", "  •", "\t-")
    return "\n".join(
        marks[place % 5] + row if place < count else row for place, row in enumerate(rows)
    )


def _trailing(count: int) -> str:
    rows = _rows(_good(100), 10)
    marks = ("...", "…", "… ", "... ")
    return "\n".join(
        row[:-1] + marks[place] if place < count else row for place, row in enumerate(rows)
    )


def _numbered(count: int) -> list[str]:
    """Return 60 words; `count` have no letter, and two more do not begin with a letter."""
    words = _good(60)
    words[5], words[6] = "7th", "'twas"
    for place in range(count):
        words[10 + 3 * place] = ("12", "(7)", "3.5", "--")[place % 4] + str(place)
    return words


def _stop_words() -> Named:
    pairs = "the be", "to of", "and that", "have with", "THE Of", "the the", "that thee"
    for pair in pairs:
        words = [*plain(58), "x"]
        words[7], words[20] = pair.split()
        yield f"gopher.stop_words {pair}", _text(words)
    yield "gopher.stop_words none", _text(plain(60))


# C4: two lines of one sentence each, and a third line that is kept or removed.


def _c4() -> Named:
    five = "garden window kitchen summer evening"
    other = "a whole sentence of other words."
    yield from _third("c4.sentences by its end", {
        "full stop": f"{five}.", "question": f"{five}?", "exclamation": f"{five}!",
        "quotation": f'{five}"', "nothing": five, "ellipsis": f"{five}...\nno mark ends this line",
        "apostrophe": f"{five}'", "semicolon": f"{five};", "space": f"{five}.  ",
    })  # fmt: skip
    yield from _third("c4.sentences by its words", {
        "five": f"{five}.", "four": "windowsill kitchens summers evenings.",
        "four and a citation": "windowsill kitchens summers evenings [1].",
        "five and citations": f"{five}.[12][edit][citation needed][]",
        "five and a note": f"{five} [note].",
    })  # fmt: skip
    for letters in (1000, 1001):
        long = "w" * (letters - 1) + "."
        name = f"c4.sentences with a word of {letters}"
        yield name, "\n".join([*_rows(_good(250), 2), f"garden window kitchen summer {long}"])
    phrases = (
        "terms of use", "Privacy Policy", "cookie policy", "uses cookies", "use of cookies",
        "use cookies", "JavaScript", "privacy policies", "java script", "used cookies",
    )  # fmt: skip
    yield from _third(
        "c4.sentences of a line with", {phrase: f"Our {phrase} {five}." for phrase in phrases}
    )
    yield from _third("c4.lorem_ipsum", {"it": f"Lorem Ipsum {five}.", "not it": f"Lorem {five}."})
    yield from _third("c4.curly_brackets", {
        "one": f"{{ {five}.", "a closing one": f"}} {five}.",
        "in a line that goes": f"javascript {{ {five}.\n{other}",
        "in a line on cookies": f"use cookies {{ {five}.\n{other}",
    })  # fmt: skip
    yield from _third("c4.lorem_ipsum in a line that", {"goes": f"lorem ipsum javascript {five}."})
    yield from _c4_sentences()


def _third(about: str, rows: dict[str, str]) -> Named:
    for name, row in rows.items():
        yield f"{about}: {name}", "\n".join([*_rows(_good(60), 2), row])


def _c4_sentences() -> Named:
    """Yield texts of one line."""
    start = " ".join(_good(50))
    ends = {
        "three with closing marks": "hurry.” Go away.') Leave.",
        "two of three marks": "hurry?!. Come back.",
        "two and decimals": "hurry 3.14 e.g.,etc. Come back!",
        "three": "hurry. Stay. Leave.",
    }
    for name, end in ends.items():
        yield f"c4.sentences {name}", f"{start} {end}"


def _line_lengths() -> Named:
    """Yield texts for FineWeb's rules, which the rules of C4, GLM and Gopher keep."""
    for short in (67, 68):
        rows = [_exact(29 if place < short else 30, place) for place in range(99)]
        name = f"fineweb.short_lines {short} of 100 of 29 characters"
        yield name, "\n".join([*rows, "the end of a very long list of words."])
    for ended in (3, 2):
        rows = _rows(_good(250), 25)
        rows = [row if place < ended else row[:-1] + '"' for place, row in enumerate(rows)]
        yield f"fineweb.punctuated_lines {ended} of 25", "\n".join(rows)


def _exact(characters: int, place: int) -> str:
    """Return a line of five words with a given number of characters."""
    return line(stretched(plain(5 * place + 5)[-5:], characters - 4))


# FineWeb's and GLM's rules, each alone.


def _fineweb() -> Named:
    for total in (400, 399):
        copy = "it came once more, and once more it went"
        rows = _rows(stretched(plain(60), total - 2 * len(copy) - 54), 6)
        name = f"fineweb.dup_line_chars {len(copy)} of {total}"
        yield name, "\n".join([copy, *rows[:3], copy, *rows[3:]])
    for count in (12, 13):
        name = f"fineweb.newlines {count} of 60"
        yield name, ("\n" * count).join(_rows(plain(60), 2))
    for name, blank in (("blank", ""), ("of spaces", " \t ")):
        rows = _rows(plain(60), 3)
        yield f"fineweb.punctuated_lines lines {name}", f"\n{blank}\n".join(rows)
    ends = ".!?。！？;:,\"')…"
    for mark in ends:
        yield f"fineweb.punctuated_lines by U+{ord(mark):04X}", line(plain(25))[:-1] + mark


def _glm() -> Named:
    for count in (101, 100):
        yield f"glm.chars {count}", line(stretched(plain(15), count - 14))


# datatrove's variants: three words per line, five sentences, lines of 30 characters, 1 %, and 0.3.


def _code_c4() -> Named:
    rows = _rows(_good(80), 4)
    thirds = {
        "three words": "window kitchen summer.", "two words": "kitchen summer.",
        "two words and a citation": "kitchen summer [1].", "an apostrophe": "window kitchen door'",
        "no mark": "window kitchen summer", "an ellipsis": "window kitchen summer...",
        "Dr. Smith": "Dr. Smith is here e.g. in U.S. towns.",
    }  # fmt: skip
    for name, third in thirds.items():
        yield f"c4@fineweb.sentences fifth line: {name}", "\n".join([*rows, third])
    one = " ".join(_good(60))
    for count in (4, 3):
        tail = " ".join(["She went home." for _ in range(count)])
        yield f"c4@fineweb.sentences {count + 1} in a line", f"{one}. {tail}"


def _code_fineweb() -> Named:
    for characters in (30, 31):
        rows = [_exact(characters, place) for place in range(7)]
        text = "\n".join([*rows, *_rows(_good(60), 3)])
        yield f"fineweb@code.short_lines 7 of 10 of {characters}", text
    for total in (1100, 1099):
        rows = _rows(_good(160, total - 22 - 154), 6)
        text = "\n".join(["we eat figs", *rows[:3], "we eat figs", *rows[3:]])
        yield f"fineweb@code.dup_line_chars 11 of {total}", text
    for lines, tokens in ((31, 100), (32, 101)):
        yield f"fineweb@code.newlines {lines - 1} of {tokens}", _broken(lines, tokens - 5)


def _broken(lines: int, count: int) -> str:
    """Return words in lines of four or three words; five lines end in a full stop."""
    words = [*_STOPS, *stretched(plain(count - 2), 10 * (count - 2))]
    longer = count - 3 * lines
    rows = [*cut(words[: 4 * longer], 4), *cut(words[4 * longer :], 3)]
    return "\n".join(" ".join(row) + "." * (place < 5) for place, row in enumerate(rows))
