"""Texts with every kind of damage that cleaning repairs, and texts that only look damaged.

tests/pipelines/steps/test_clean.py compares further texts with ftfy itself.
"""

import json
from pathlib import Path

_START = "The old bridge over the river was closed for repairs"

_KINDS = {
    "nothing to repair": "during the summer.",
    "mojibake": "cafÃ© and naÃ¯ve and â€œquotedâ€\x9d",
    "mojibake twice": "cafÃƒÂ©",
    "mojibake of Chinese": "ä¸\xadæ–‡",
    "mojibake of Russian": "Ð¿Ñ€Ð¸Ð²ÐµÑ‚",
    "mojibake that lost its non-breaking space": "Ã la carte",
    "accents that are right": "café naïve über Ågren É é",
    "entity": "fish &amp; chips &lt; 3 &#65; &#x4e2d; &hellip;",
    "entity without a semicolon": "fish &amp chips &copy 2020",
    "no entity": "R&D; AT&T &; &#; &nosuchname; & more",
    "entity in capitals": "&AMP; &EACUTE;",
    "entity of 24 letters": f"&{'a' * 24};",
    "entity of 25 letters": f"&{'a' * 25};",
    "entity after markup": "a <b> tag\nand &amp; below it",
    "entity before markup": "fish &amp; chips\nand a <b> tag &amp; more\nand &lt; here",
    "entity of an entity": "&amp;amp;",
    "bell": "ring\x07ring",
    "all controls": "".join(map(chr, range(1, 32))).replace("\n", ""),
    "delete": "a\x7fb",
    "tab, line feed, carriage return": "a\tb\r\nc\rd\n",
    "terminal escape": "\x1b[31mred\x1b[0m and \x1b[1;32mgreen\x1b[m",
    "C1 controls": "a\x80b\x85c\x91quoted\x92 \x9d\x81",
    "C1 controls among Chinese": "中\x85文\x93中文\x94",
    "surrogates written in UTF-8": "😀 í\xa0½í¸\x80",
    "terminal escape of a title": "\x1b]0;title\x07 after",
    "non-breaking space": "10\xa0km",
    "line and paragraph separators": "a\u2028b\u2029c",
    "zero width": "a\u200bb\u200cc\u200dd\u2060e\ufefff",
    "byte order mark": "\ufeffa",
    "direction": "a\u202eb\u202cc\u2066d\u2069",
    "deprecated controls": "a\u206ab\u206fc\ufff9d\ufffae\ufffbf",
    "surrogate pair": "smile \ud83d\ude00 here",
    "lone surrogate": "half \ud83d here",
    "replacement": "lost \ufffd here and ï¿½ there",
    "ligature": "ﬁne aﬄuent ﬅ",
    "full width": "ＡＢＣ１２３，。！（）",
    "half width": "ｶﾀｶﾅ ﾊﾟ",
    "curly quotes": "“quoted” ‘it’s’ „low“ «guillemets»",
    "not composed": "e\u0301 A\u030a",
    "ideographic space": "　　段落",
    "symbols alone": "§ 7 ½ ° 20 °C £5 ¥8 └── ├─ ☺ ™",
    "symbols together": "§§ °Ñ ½½ £Ã",
    "accent beside a quotation mark": "é“ “é ”É Â“ À “Â",
    "capital after small": "aÉ αÉ ВÉ éÉ",
    "private use": "\ue000 \uf8ff \U0010fffd",
    "emoji": "👨\u200d👩\u200d👧 🇨🇳 👍🏽",
    "astral Han": "𠀀𠮷",
}
"""The ends of the texts, by name."""

_EMPTY = {
    "empty": "", "a space": " ", "white space": " \t\r\n\x0b\x0c", "ideographic space": "\u3000",
    "a non-breaking space": "\xa0", "a bell": "\x07", "a byte order mark": "\ufeff",
    "zero width": "\u200b", "a full stop": ".", "an entity of a space": "&nbsp;",
}  # fmt: skip


def damaged(folder: Path) -> None:
    """Write the texts as JSON that escapes all characters except ASCII."""
    texts = {f"clean: {name}": f"{_START}, {end}" for name, end in _KINDS.items()}
    texts |= {
        f"clean: {name} on a line": f"{_START}.\n{end}\nThen." for name, end in _KINDS.items()
    }
    texts |= {f"empty: {name}": text for name, text in _EMPTY.items()}
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()]
    (folder / "damaged").mkdir()
    (folder / "damaged" / "damaged.jsonl").write_text("".join(lines), "utf-8")
