"""Finds phrases that plain English does not use: `python -m tests.plain_words [PATH …]`.

It reads the docstrings, comments and messages of the code, the templates, and the pages. If there
are paths, it reads only files below these. It prints each finding with a better phrase.
"""

import ast
import io
import re
import sys
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("pipelines", "shards", "trainer", "tests", "docs")
SUFFIXES = (".py", ".md", ".j2", ".json", ".ipynb", ".cfg", "")
LEFT_OUT = (
    "docs/evidence.md",
    "docs/flags.md",
    "pipelines/sample/",
    "tests/data/",
    "tests/golden/figures/",
    "tests/plain_words.py",
    "tests/refusals/messages/",
    "tests/test_plain_words.py",
    "trainer/configs/",
)
"""The paths of data, of generated pages and texts, and of the phrases themselves."""

_COUNTED = (
    "byte|cell|character|checkpoint|column|document|file|folder|line|pair|prompt|question|record|"
    "row|sample|sentence|shard|text|token|window|word"
)
_PER = (
    f"{_COUNTED}|batch|call|commit|core|day|disk|epoch|format|generation|group|hash|hour|job|key|"
    "kind|label|language|layer|machine|node|page|part|process|rank|request|rule|run|second|segment|"
    "source|split|stage|step|table|task|thread|value|worker"
)
_NAMED = "dataset|file|folder|label|link|manifest|name|number|word"
PHRASES = {
    r"(?:^|(?<=[.] ))what (?![^.?]*\?)": "name the thing instead of “what …”",
    r"\b(?:return|yield)s? what\b": "name the thing instead of “what …”",
    r"\b(?:of|for|with|from|by|as|into|beside|at|after|before) what\b(?! to )": (
        "name the thing instead of “what …”"
    ),
    r"\btold\b": "reported, given, printed",
    r"\b(?:is|are|was|were|be|been) said\b|\bsaid (?:of|once)\b|\bsays? of\b": "reported, written",
    r"\b(?:is|are|was|were|be|been) asked\b(?! to\b)|\basked of\b": "requested, configured, called",
    r"\bof (?:your|their|our) own\b": "your own …, separate …",
    r"\bone['’]s own\b": "your own …, custom, user-defined",
    r"\bbeside\b": "next to, compared with, besides",
    r"\b(?:lies?|lay|lying) (?:in|at|on|under|behind|below|above|there|where|within)\b": "is in",
    r"\b(?:stands?|stood|standing) (?:in(?! for)|at|on|under|below|above|there|where)\b": "is in",
    r"\b(?:stands?|stood|standing) (?:before|after)\b": "precedes, follows",
    r"\b(?:mends?|mended|mending)\b": "fix, repair",
    r"\b(?:brings?|brought|bringing)\b(?! (?:back|up|down|together))": "fetch, include, cause",
    r"\b(?:go|goes|went|going|gone) on\b": "continue, resume",
    r"\b(?:takes?|took|taken|taking) the place of\b": "replace",
    r"\bin (?:the )?place of\b": "instead of",
    rf"(?<!many )(?<!which )(?<!whose )\b(?:{_COUNTED})s? an? (?:{_PER})\b(?! name)": "X per Y",
    r"\bso (?:many|often|long|much|few)\b(?! as\b)(?!(?: [\w-]+){1,6},? that\b)(?! that\b)": (
        "say how many"
    ),
    r"\bno part of\b": "not part of",
    rf"(?<!there )\b(?:is|are|was|were) no (?:{_NAMED})s?\b": "is not a …",
    r"\b(?:nothing|none) but\b|\bbut for\b": "only, except",
    r"(?:^|(?<=[.:;] ))the (?:most|least|fewest) \w+s\b(?! (?:are|have)\b)": (
        "maximum, minimum number of"
    ),
    r"\b(?:least|greatest) (?:length|mean|number|score|share|size|value)\b": "minimum, maximum",
    r"\bdecides? (?:the |its |their )?bytes\b": "affect the bytes",
    rf"\bone an? (?:{_COUNTED})\b": "one per …",
    r"\bas of (?:pipelines|trainer|_)": "as for",
    r"\bundisturbed\b": "uninterrupted",
    r"\bbuilt-in sample\b": "bundled sample",
    "您": "不用“您”",
    "词元": "token",
    "世代": "代",
}
CONSTANT = re.compile(r"\b_*(?:[A-Z]+_)*(?:MOST|LEAST)_\w+")


@dataclass(frozen=True)
class Finding:
    """A phrase in a file, and a better phrase."""

    path: str
    line: int
    phrase: str
    instead: str


def main(paths: list[str]) -> int:
    """Print the findings below some paths, or all findings; return 1 if there are any."""
    found = [finding for path in files() for finding in findings(path)]
    if paths:
        found = [each for each in found if any(_below(each.path, path) for path in paths)]
    for each in found:
        print(f"{each.path}:{each.line}: {each.phrase}: {each.instead}")
    return int(bool(found))


def _below(path: str, start: str) -> bool:
    start = start.rstrip("/")
    return path == start or path.startswith(f"{start}/")


def files() -> Iterator[Path]:
    """Yield the files to read."""
    found = [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    for path in sorted([*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "setup.cfg", *found]):
        name = str(path.relative_to(ROOT))
        if path.suffix in SUFFIXES and path.is_file() and not name.startswith(LEFT_OUT):
            yield path


def findings(path: Path) -> Iterator[Finding]:
    """Yield the phrases found in a file."""
    name, text = str(path.relative_to(ROOT)), path.read_text("utf-8", "replace")
    for start, passage in _passages(path, text):
        flat, starts = _flat(passage)
        for phrase, instead in PHRASES.items():
            for match in re.finditer(phrase, flat, re.IGNORECASE | re.MULTILINE):
                line = start + bisect_right(starts, match.start()) - 1
                yield Finding(name, line, match[0].strip(), instead)
    if path.suffix == ".py":
        for line, row in enumerate(text.splitlines(), 1):
            for constant in CONSTANT.findall(row):
                yield Finding(name, line, constant, "MAX_…, MIN_…")


def _flat(passage: str) -> tuple[str, list[int]]:
    """Return a text whose lines are joined and whose code is masked, and each line's offset.

    Paragraphs, list items and table cells begin a new line.
    """
    flat, starts = "", []
    for row in passage.split("\n"):
        starts.append(len(flat))
        plain = re.sub(r"`[^`]*`", "_", row.strip())
        flat += re.sub(r"^(?:[-*#]+|\d+\.|[\w*`]+:) |\| ?", "\n", plain) + " " if plain else "\n"
    return flat, starts


def _passages(path: Path, text: str) -> list[tuple[int, str]]:
    """Return the passages of a file, each with the number of its first line."""
    if path.suffix == ".py":
        return [*_comments(text), *_strings(text, messages="tests" not in path.parts)]
    if path.suffix == ".md":  # leaves out the blocks of code
        text = re.sub(
            r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.S | re.M
        )
    return [(1, text)]


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a module, joining the lines of each block."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    for _, numbered in groupby(enumerate(found), lambda each: each[1][0] - each[0]):
        block = [each for _, each in numbered]
        yield block[0][0], "\n".join(comment.lstrip("# :") for _, comment in block)


def _strings(text: str, *, messages: bool) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, and all other strings in it that are sentences."""
    nodes = [*ast.walk(ast.parse(text))]
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    parts = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        shown = "" if node in parts else _shown(node)
        if node in docstrings or (messages and shown.count(" ") > 1):
            yield getattr(node, "lineno", 1), shown


def _shown(node: ast.AST) -> str:
    """Return the text of a string, with … for its values."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_shown(part) or "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
