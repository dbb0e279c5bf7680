import itertools
import re
import re._parser as sre  # private, but the proof below is about the parsed pattern
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ftfy
import orjson
import pyarrow as pa
import pytest
import zstandard
from ftfy.badness import BADNESS_RE, MOJIBAKE_CATEGORIES
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.filters.clean import (
    _SUSPECT,
    CONFIG,
    SEGMENT_CHARACTERS,
    Clean,
    are_blank,
    repair,
    repaired,
)
from tests.pipelines.filters.batches import CHINESE, batch, check_same_rows, with_prompts

BENCH = Path(__file__).parents[4] / "shared" / "data" / "bench"
PLANE = "".join(map(chr, range(0x10000)))
MOJIBAKE = "".join(re.findall(f"[{''.join(MOJIBAKE_CATEGORIES.values())}]", PLANE))


def reference(text: str) -> str:
    return ftfy.fix_text(text, CONFIG)


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("cafÃ© crÃ¨me", "café crème"),
        ("â€œquotedâ€\x9d", "“quoted”"),
        ("ä¸\xadæ–‡ä¹±ç\xa0\x81", "中文乱码"),
        ("Ã  la mode", "à la mode"),
        ("Tom &amp; Jerry &lt;3 &#20013;", "Tom & Jerry <3 中"),
        ("&amp;amp;amp;", "&"),
        ("first &amp;\n<b>up &amp; on</b>\nlast &amp;", "first &\n<b>up &amp; on</b>\nlast &amp;"),
        ("bell\x07 back\x08space nul\x00 bom\ufeff del\x7f", "bell backspace nul bom del"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("half \ud83d pair \ud83d\ude00", "half \ufffd pair 😀"),
        ("win\x93dows\x94", "win“dows”"),
        ("clean 行\ncafÃ©\nclean 行", "clean 行\ncafé\nclean 行"),
    ],
)
def test_damage_is_repaired(text: str, repaired: str) -> None:
    assert repair(text) == repaired == reference(text)


@pytest.mark.parametrize(
    "text",
    [
        "“弯引号”和‘单引号’，全角标点：！？；（）——……",
        "全角空格\u3000全角字母ＡＢＣ１２３，半角ｶﾅ",
        "ﬁne ligatures ﬀ ﬃ, “quotes” ‘it’s’",
        "CRLF\r\nand CR\rand separators\u2028\u2029stay\t\n",
        "combining e\u0301 and half a pair",
        "Né à Paris, l’été ; « voilà » 5 € – Ça va ?",
        "Съешь же ещё этих мягких французских булок",
        "25°C ± 2，3×4，≥5，§7，￥100，¥200",
        "│ a │ b │ ├── tree └── end",
        "emoji 👨\u200d👩\u200d👧 and \U00020000",
        "a & b &c; &nosuch; &amp",
        "",
        "\n\n",
    ],
)
def test_clean_text_stays_as_it_is(text: str) -> None:
    assert repair(text) is text or repair(text) == text
    assert reference(text) == text


def choices(pattern: Any) -> Iterator[Any]:
    for operator, value in pattern:
        if operator is sre.BRANCH:
            yield from value[1]
        else:
            raise AssertionError(f"BADNESS_RE is more than alternatives: {operator}")


def characters(item: Any) -> set[str]:
    """The characters that a part of a pattern matches; none if they are many."""
    operator, value = item
    if operator is sre.LITERAL:
        return {chr(value)}
    if operator is not sre.IN or value[0][0] is sre.NEGATE:
        return set()
    matched = set()
    for kind, codes in value:
        if kind is sre.LITERAL:
            matched.add(chr(codes))
        elif kind is sre.RANGE:
            matched |= {chr(code) for code in range(codes[0], codes[1] + 1)}
        else:
            return set()
    return matched


def always_suspect(alternative: Any) -> bool:
    sets = [characters(item) for item in alternative]
    single = any(matched and all(_SUSPECT.search(c) for c in matched) for matched in sets)
    return single or any(
        left and right and all(_SUSPECT.search(x + y) for x in left for y in right)
        for left, right in itertools.pairwise(sets)
    )


def test_only_what_is_suspect_can_be_bad() -> None:
    # Each alternative of ftfy's pattern has one place, or two places side by side, that only
    # suspect characters fill: so text without suspects is never bad, and ftfy leaves it alone.
    alternatives = list(choices(sre.parse(BADNESS_RE.pattern, BADNESS_RE.flags)))
    assert len(alternatives) > 30
    assert [item for item in alternatives if not always_suspect(item)] == []


def test_every_character_of_the_basic_plane() -> None:
    plane = [chr(code) for code in range(0x10000)]
    for line in plane:
        if _SUSPECT.search(line) is None:
            continue
        assert repair(line) == reference(line)
    # The others, many on a line: if ftfy changed a single one, it would change the line.
    rest = [c for c in plane if _SUSPECT.search(c) is None and c != "\n"]
    assert len(rest) > 60_000
    for start in range(0, len(rest), 64):
        line = " x ".join(rest[start : start + 64])
        assert repair(line) == reference(line)


RARE = "\x00\x07\x1b[m\ud83d\ude00\u2028\ufeff"
awkward = st.text(st.sampled_from(MOJIBAKE + RARE + "abcXYZ012 .,?!;&#<>\n\r\t中文，。“”‘’"))
mojibake = st.builds(
    lambda text, codec: text.encode().decode(codec, errors="replace"),
    st.text(st.sampled_from("éüñçøß“”’–—中文。，жПø €₤☂"), max_size=8),
    st.sampled_from(["latin-1", "cp1252", "cp1251", "cp1250", "cp1253", "mac-roman", "cp437"]),
)
entities = st.sampled_from(
    ["&amp;", "&lt;", "&#x41;", "&#65;", "&eacute;", "&EACUTE;", "&amp;amp;", "<"]
)
plain = st.sampled_from(["word ", "字", "\n", "“", "”", " ", "é", "été"])


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(awkward, mojibake, entities, plain), max_size=12).map("".join))
def test_repair_is_ftfy(text: str) -> None:
    assert repair(text) == reference(text)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 40), st.lists(st.one_of(mojibake, entities), min_size=1, max_size=3))
def test_repair_is_ftfy_where_long_lines_are_cut(back: int, parts: list[str]) -> None:
    line = "é" * (SEGMENT_CHARACTERS - back) + "".join(parts) + "é"
    assert repair(line) == reference(line)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_repair_is_ftfy_on_real_text(language: str) -> None:
    path = BENCH / f"{language}.jsonl.zst"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    with zstandard.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        texts = [orjson.loads(line)["text"] for line, _ in zip(lines, range(300), strict=False)]
    assert len(texts) == 300
    assert [i for i, text in enumerate(texts) if repair(text) != reference(text)] == []


@pytest.mark.parametrize("unit", ["&amp;amp;amp;amp;amp;", "amp;", "Ã©", "é”“", "\x1b["])
def test_hostile_lines_take_bounded_time(unit: str) -> None:
    start = time.process_time()
    repair("&" + unit * (200_000 // len(unit)))
    # In one piece, nested entities take minutes; each takes under a second here.
    assert time.process_time() - start < 10


# --- columns of text


def column(texts: Sequence[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


DAMAGED = ["clean", "cafÃ©", "", "Tom &amp; Jerry", "é", "bell\x07"]


def test_columns_are_repaired() -> None:
    texts, changed = repaired(column(["before", *DAMAGED, "Ã©"]).slice(1, len(DAMAGED)))
    assert texts.to_pylist() == [repair(text) for text in DAMAGED]
    assert changed.tolist() == [False, True, False, True, False, True]
    for same in (["clean", "Né à Paris"], []):
        texts, changed = repaired(column(same))
        assert texts.to_pylist() == same
        assert changed.tolist() == [False] * len(same)


def test_blank_texts_are_of_white_space_only() -> None:
    spaces = [character for character in PLANE if character.isspace()]
    texts = [
        "",
        *spaces,
        "".join(spaces),
        "a",
        " a",
        "\u3000。",
        "。",
        "\u2014",
        "é",
        "\u200b",
        " \0",
    ]
    texts += [f"{space}x" for space in spaces]
    assert are_blank(column(texts)).tolist() == [not text.strip() for text in texts]
    assert are_blank(column(texts).slice(3, 5)).tolist() == [True] * 5
    assert are_blank(column([])).tolist() == []


def test_clean_repairs_and_says_where() -> None:
    before = batch(CHINESE, "Tom &amp; Jerry", "cafÃ©", "", " \n　")
    verdict = Clean()(before)
    check_same_rows(verdict, before)
    assert verdict.batch["text"].to_pylist() == [CHINESE, "Tom & Jerry", "café", "", " \n　"]
    assert verdict.batch["repaired"].to_pylist() == [False, True, True, False, False]
    assert verdict.reasons.to_pylist() == [None, None, None, "empty", "empty"]


def test_clean_drops_what_the_repair_empties() -> None:
    text = "\x01\x02"
    assert ftfy.fix_text(text, CONFIG) == ""
    verdict = Clean()(batch(text))
    assert verdict.reasons.to_pylist() == ["empty"]
    assert verdict.batch["repaired"].to_pylist() == [True]


def test_prompts_are_repaired_too() -> None:
    verdict = Clean()(with_prompts((CHINESE, CHINESE), ("Tom &amp; Jerry", "")))
    assert verdict.batch["prompt"].to_pylist() == ["Tom & Jerry", ""]
    assert verdict.batch["repaired"].to_pylist() == [True, False]
