"""Small texts, each of which has something that a metric may get wrong."""

PROSE = (
    "The committee met on Monday to discuss the budget. It was agreed that the roof should be "
    "repaired before winter, and that two members would look for a builder. Nobody objected."
)
CHINESE_PROSE = (
    "黄河是中国的第二长河，发源于青藏高原。它流经九个省区，最后注入渤海。因为河水中有大量的泥沙，"
    "所以被称为黄河；下游的河床高出两岸的地面。古人说：“黄河之水天上来。”这是真的吗？当然……"
)
TEXTS = (
    "",
    " ",
    "\n\n",
    "word",
    "two words",
    "!!! ... ???",
    "#hash #tag #three and the rest of it",
    "so it goes… and goes... and goes.... on",
    PROSE,
    f"{PROSE}\n\n{PROSE}",
    f"{PROSE}\n{PROSE}\n\nAnother line, not the same.",
    f"  {PROSE}  \n{PROSE}",
    "- one\n- two\n- three\nfour",
    "• one\n  • two\n* three\n-four",
    "This line goes on...\nThis one too…  \nThis one ends.",
    "a b c d e f a b c d e f a b c d e f",
    "ab c d e f g h a bc d e f g h",
    "a b c d e f g ab c d e f g",
    "no no no no no no no no no no no no",
    "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 1 2 3 4 5 6 7 8 9 10",
    "THE Be To oF AND that HAVE with",
    "The the THE be",
    "½ ² x² 3rd ... _ the",
    "line one\x0bline two\u2028line three\x85line four...",
    "carriage\r\nreturn\r\nlines\r\n",
    "Please enable JavaScript to see this page. {x}\nWe use cookies on this page today.\n"
    "This is a line that stays here. And so does this! Is it?",
    "Lorem ipsum dolor sit amet, consectetur.\nA proper line with a full stop.",
    "Function f() { return 1; } is a line.\nA proper line with a full stop.",
    f"A line with a word of {'x' * 1001} letters.\nA proper line with a full stop.",
    "Cited facts are better facts.[1][23]\nSpace before the mark goes on. [edit]\n"
    'He said "this is the end of it."\nFour words are few.\nIt trails off after some words...',
    "Read our privacy policy and more here.\nThe terms of USE apply to all users.",
    CHINESE_PROSE,
    f"{CHINESE_PROSE}\n{CHINESE_PROSE}",
    f"{CHINESE_PROSE}\n",
    "是。是。是。好！好！不。",
    "“他来了。”“他走了！”……（完。）",
    "没有标点的一行文字",
    "第一行\n第二行。\n\n第三行！\n第一行",
    "Python 是一种语言，version 3.11 于 2022 年 10 月发布。I like 它！",
    "12 34 5.6 78 年",
    "繁體中文與簡體中文並不相同，但意思相近。" * 3,
    "天地玄黄宇宙洪荒日月盈昃" * 4,
)
EDGES = (
    # Chinese: lines and sentences, numbers, lower-case letters, and runs of 13 characters
    "a\n\n\na\nb\n",
    "\na\n\u3000\na\r\na\n",
    "”\n",
    "。a。a",
    "。）。）”。a）",
    "）。。”’」』）】》\"') \u3000。",
    " 一行。 两行！\n",
    "\r\n一行。\x1c两行！",
    "1.2.3 4..5 6. 7.a .8 9 １２．３ ٣.٤ 1,000.5",
    "aB cD éA ＡＢ ſ K",
    "İ" * 20,
    "i̇" * 20,
    "ΑΣ ΑΣΑ " * 9,
    "ABCDEFGHIJKLMabcdefghijklm",
    "abcdefghijkl",
    "a" * 13,
    "a" * 14,
    "a" * 300,
    "abcdefghijklm abcdefghijklm x abcdefghijklm",
    "\ud800\U0010ffff" * 20,
    # White space of every kind
    "".join(chr(code) for code in range(0x11000) if chr(code).isspace()).join("abcdefghijklmnop"),
    "a\u180eb\u200bc\ufeffd\u2060e",
    "\r\n\r\nlast",
)
"""Texts that loops over code points may easily get wrong."""
