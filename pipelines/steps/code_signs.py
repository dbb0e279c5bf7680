"""Recognizes code and markup, in which entities such as &amp; must not be unescaped.

Only texts with entities are checked. One sign of code is enough, because unescaping too little
leaves an &amp; in a sentence, but unescaping too much breaks a program.
"""

import re
from collections.abc import Mapping

_ENTITY = r"&\#?[0-9A-Za-z]{1,24};"
_START, _END = r"^[ \t]*", r"[ \t]*$"

_SIGNS: Mapping[str, str] = {
    "<": r"</?[A-Za-z][^<>\n]{0,300}> | <!(?:--|[A-Z\[]) | <\?(?:php|xml)",
    # An escaped tag, but not an address as in &lt;ann@example.org&gt;.
    "&": r"""&(?:lt|LT|\#60|\#x3[cC]);[/!?]?[A-Za-z][\w:-]*
             (?:[ /](?:(?!&lt;)[^\n]){0,300}?)?&(?:gt|GT|\#62|\#x3[eE]);""",
    '"&': rf'"(?:{_ENTITY})+"',
    "'&": rf"'(?:{_ENTITY})+'",
    "`": rf"^[ ]{{0,3}}``` | `[^`\n]*{_ENTITY}[^`\n]*`",
    "~~~": r"^[ ]{0,3}~~~",
    "ML": r"\b(?:X?HTML|XML)\b",
    "#": rf"^\#! | {_START}\#[ ]?(?:include|define|ifdef|ifndef|endif|pragma)\b",
    "\\": r"\\[A-Za-z]{2,}\{ | \\(?:alpha|beta|leq?|geq?|times|cdot|sum|int)\b | \\f[BIRP]\b",
    "{{": r"\{\{[^{}\n]+\}\}",
    "{%": r"\{%[^{}\n]+%\}",
    "[[": r"\[\[[^\[\]\n]+\]\]",
    "[/": r"\[/(?:code|b|i|url|quote|img)\]",
    "@@ -": r"^@@[ ]-\d+,\d+[ ]\+\d",
    "def ": rf"{_START}(?:async[ ])?def[ ]\w+\(",
    "class ": rf"{_START}class[ ]\w+[^\n]{{0,100}}[:{{]{_END}",
    ":\n": rf"""{_START}(?:elif\b[^\n]*|except\b[^\n]*|else|try|finally):{_END}
               | {_START}(?:if|for|while|with)\b[^\n]*:[ \t]*\n[ \t]+\w""",
    "import ": rf"""{_START}from[ ][\w.]+[ ]import[ ]
                  | {_START}import[ ][\w.*]+(?:[ ]as[ ]\w+)?;?{_END}""",
    "=>": r"\([\w, ]*\)[ ]?=>",
    "{": rf"""function\b[ ]?\w*\([^)\n]*\)[ ]*\{{ | [\w)\]>"'][ ]?\{{{_END}""",
    "}": rf"{_START}\}}\)?[;,]?{_END}",
    ";": rf"""\b(?:public|private|protected|static|const|void|unsigned)[ ][\w<>\[\], ]+[ (={{;]
                [^\n]*[;)]{_END}
              | {_START}(?:return[ ])?[A-Za-z_$][\w.$:>-]*\([^\n]*\);{_END}
              | {_START}[\w.$:>\[\]()*-]+(?:[ ][\w.$:<>*\[\]]+)?[ ]?(?:[-+|]|&amp;)?=
                [ ]?[^=\n]*;{_END}""",
    ") {": r"\b(?:if|for|foreach|while|switch)[ ]?\([^\n]*\)[ ]\{",
    "if (": rf"{_START}(?:else[ ])?if[ ]\([^\n]*\)(?:{_END}|[ ]\w+[^\n]*;)",
    "=": r"""[A-Za-z_$](?:[ ]=[ ]|=)["'\[{(] | [\w)\]][ ]?[!=]=[ ]?["'\w(]""",
    "&& ": r"[ ]&&[ ]",
    "&amp;&amp;": r"&amp;&amp;",
    "-&gt;": r"\w-&gt;\w",
    "s/": r"""['"]s/[^\n]*/""",
    "=~": r"[ ]=~[ ]",
    "//": r"(?:^[ \t]*|[;)}{][ ]*)//[ ]",
    "/*": r"/\*",
    "->": r"\w->\w+[(;.=\[]",
    "::": r"\w::\w",
    "()": r"\w\(\)",
    "(": r"""\.[A-Za-z_]\w*\(["'\w] | \w\(["']""",
    ': "': rf'{_START}[\w-]+:[ ]"[^"\n]*"{_END}',
    ' "': rf'{_START}(?:echo|print|printf|puts|raise|require)[ ]"',
    " '": rf"{_START}(?:echo|print|printf|puts|raise|require)[ ]'",
    " -": rf"{_START}[a-z][\w-]*[ ]--?[A-Za-z][\w-]*(?:[ =]|$)",
    "end": rf"{_START}end;?{_END}",
    '":': rf'{_START}"[\w-]+":[ ]',
    "$ ": rf"{_START}\$[ ](?:\./)?[a-z][\w.-]*(?:[ ]|$)",
    "SELECT ": r"\bSELECT[ ][^\n]+[ ]FROM[ ]",
}
"""The patterns of code; each is searched for only in texts that contain its key."""

_PATTERNS = {
    needle: re.compile(pattern, re.MULTILINE | re.VERBOSE | re.ASCII)
    for needle, pattern in _SIGNS.items()
}


def holds_code(text: str) -> bool:
    """Return whether a text contains code or markup, or describes it."""
    return any(needle in text and pattern.search(text) for needle, pattern in _PATTERNS.items())
