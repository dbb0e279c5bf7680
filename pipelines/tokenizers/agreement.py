"""Compares fast encoders with the reference each time a model is loaded.

The texts are those for which implementations of BPE tend to differ.
"""

from collections.abc import Sequence

import numpy as np

from pipelines.tokenizers.model import Encode

CHECK_TEXTS = (
    "",
    " ",
    "a",
    "Hello world",
    "  two  spaces   three \t tabs\t\t\r\n\r\nlines\n\n\n end \n",
    "\n",
    " \n \n",
    "trailing   ",
    "I'm you're he'll we've they'd it's can't I'D YOU'LL 'sx ''s ' s",
    "don\u2019t \u201cquote\u201d \u2026 \u2014 dash\u2013dash",
    "1 12 123 1234 12345 3.14159 1,000,000 \u0661\u0662\u0663 \u2163 \u00bd x2y3",
    "snake_case camelCase PascalCase UPPER lowerUPPER UPPERlower aB",
    "!!! ??? ... ,,, ;;; ### @@@ $$$ %%% ^^^ &&& *** ((( ))) <<< >>> ~~~ ``` |||",
    "def f(x):\n    return {'a': [1, 2], \"b\": x ** 2}  # note\n\n\n\tpass",
    "<|endoftext|> <|startofpiece|> [MASK] [gMASK] <s> </s> <unk> <n> <pad> [CLS]x[SEP]",
    "人工智能正在改变我们的生活方式，也带来了新的问题。",
    "人工智慧，全形標點！？；：「引號」　全形空格",
    "吾輩は猫である。カタカナ ﾊﾝｶｸ ｶﾞ",
    "안녕하세요 \u1112\u1161\u11ab 오늘",
    "Съешь ещё этих булок. Ґ є ї",
    "\u0635\u0650\u0641 \u062e\u064e\u0644\u0642\u064e \u0644\u0627 \u200f\u202b",
    "ऋषियों को क्षत्रिय \u0915\u094d\u200d\u0937",
    "เป็นมนุษย์สุดประเสริฐ",
    "e\u0301 n\u0303 a\u0308\u0323 \u0301 x\u0300\u0301\u0302\u0303",
    "\u00e9\u00df\u0130\u0131\u01c5\ufb01 \u017f \u212a",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467\U0001f3fd\u2708\ufe0f\U0001f1e8\U0001f1f3",
    "\U00020000\U0002a6d6 \U0001d400\U0001d7d8 \U0001f9ff\U000e0067",
    "nul\x00tab\x0bff\x0cesc\x1bdel\x7fnel\x85nbsp\xa0shy\xad",
    "\u200b\u200c\u2028\u2029\u202f\u205f\u2060\u3000\ufeff\ufffd\ufffe\uffff",
    "\u0378\u05ff\u2fe0\U000103ff's \U0001faff'll",
    "a" * 300,
    " " * 200,
    "\n" * 100 + "x",
    "\t \t" * 50,
    "=-" * 100,
    "的" * 150,
    "ab" * 150 + "1" * 100,
    "https://example.org/a/b?c=d&e=f#g user@example.org C:\\dir\\file.txt",
    "x" + "\u0301" * 80,
    "supercalifragilistic" * 12,
)
"""Texts with white space, contractions, digits, scripts, combining marks, control characters,
special tokens, and repetitions."""


_MAX_PIECES = 200
"""The maximum number of pieces in a text of `texts_of_pieces`."""


def texts_of_pieces(pieces: Sequence[str]) -> list[str]:
    """Return texts made of all pieces, with different neighbours than in the vocabulary."""
    count = -(-len(pieces) // _MAX_PIECES)
    return ["".join(pieces[first::count]) for first in range(count)]


def first_difference(encode: Encode, reference: Encode, texts: Sequence[str]) -> str | None:
    """Describe how the ids of the first text with a difference differ; None if all agree."""
    tokens, lengths = encode(texts)
    parts = np.split(tokens, np.cumsum(lengths)[:-1])
    for text, part in zip(texts, parts, strict=True):
        expected = reference([text])[0]
        if not np.array_equal(part, expected):
            return f"for {text[:40]!r} it gives {part.tolist()[:8]}, not {expected.tolist()[:8]}"
    return None
