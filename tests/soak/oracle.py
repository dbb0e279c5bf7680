"""The expected content of a dataset, computed in plain Python from the records of its inputs.

The code follows docs/ and imports nothing of the product. It has no fastText of its own, so it
takes the label and score of a text's language from the audit table.

Guarantee: The order is one random permutation, the same for any number of shards.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ftfy
from ftfy.chardata import CONTROL_CHARS
from ftfy.fixes import unescape_html

from tests.soak.dataset import DocumentKey
from tests.soak.records import Document
from tests.soak.scenario import Input, Options
from tests.soak.texts import PLANTED

QUARANTINES = frozenset(
    (
        *("bad-utf8", "bad-json", "not-an-object", "truncated", "too-long", "unterminated-array"),
        *("trailing-bytes", "bad-archive", "bad-row-group", "missing-field", "wrong-type", "nul"),
    )
)
CUT = frozenset(("truncated", "unterminated-array"))
"""Reasons of records that are cut off, after which an unknown number of records is missing."""
FTFY_CONFIG = ftfy.TextFixerConfig(
    unescape_html=False,
    fix_latin_ligatures=False,
    fix_character_width=False,
    uncurl_quotes=False,
    fix_line_breaks=False,
    normalization=None,
    max_decode_length=16_384,
    explain=False,
)
"""The settings that docs/pipelines.md gives: ftfy repairs mojibake and surrogates; this module
repairs entities and control characters afterwards."""

_GOLDEN, _WORD = 0x9E3779B97F4A7C15, 2**64 - 1


def _mix_bits(value: int) -> int:
    for _ in range(2):
        value = (value + _GOLDEN) & _WORD
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _WORD
        value ^= value >> 31
    return value


def record_hash(domain: str, seed: int, source: str, path: str, position: int) -> int:
    """Return one of the three hashes of a record's identity."""
    digest = hashlib.blake2b("\0".join((domain, str(seed), source, path)).encode(), digest_size=8)
    return _mix_bits(position ^ int.from_bytes(digest.digest(), "little"))


def order_hash(seed: int, key: DocumentKey) -> int:
    """Return the number that decides a document's order."""
    source, path, position, ordinal = key
    record = record_hash("order", seed, source, path, position)
    return _mix_bits((record + ordinal * _GOLDEN) & _WORD)


@dataclass
class Fate:
    """The expected fate of a document, or of a record that gives none."""

    key: DocumentKey
    order: int
    holdout: int
    raw: str
    """The prompt and text as they were read."""
    text: str
    """The prompt and text after all steps."""
    prompt: str
    group: str
    family: int
    repaired: bool = False
    reason: str = ""
    """The reason for which the document is dropped or the record quarantined; "" if it is kept."""
    may_be_near: bool = False
    """Whether the document may be dropped as a near-duplicate."""
    held_out: bool = False

    @property
    def verdict(self) -> str:
        if not self.reason:
            return "kept"
        return "quarantined" if self.reason in QUARANTINES else "dropped"


@dataclass
class SeenDocuments:
    """The documents of earlier generations, as deduplication knows them."""

    texts: set[str] = field(default_factory=set)
    families: set[int] = field(default_factory=set)


@dataclass
class Expected:
    """The expected content of a generation."""

    fates: dict[DocumentKey, Fate]
    not_sampled: Counter[str]
    fanned_out: Counter[str]


Labels = Mapping[DocumentKey, tuple[str | None, float | None]]


def expect(
    inputs: Iterable[Input], options: Options, labels: Labels, seen: SeenDocuments
) -> Expected:
    """Return the generation that some files should give, and add the files' texts to `seen`."""
    expected = Expected({}, Counter(), Counter())
    for file in inputs:
        for row in file.rows:
            identity = options["seed"], file.source, file.relative, row.position
            if record_hash("sample", *identity) >= int(options["sample"] * 2**64):
                expected.not_sampled[file.source] += 1
                continue
            documents = row.result.documents or (Document("", reason=row.result.quarantined),)
            expected.fanned_out[file.source] += len(documents) - 1
            for ordinal, document in enumerate(documents):
                key = (file.source, file.relative, row.position, ordinal)
                assert key not in expected.fates, f"the generator made {key} twice"
                expected.fates[key] = Fate(
                    key,
                    order_hash(options["seed"], key),
                    record_hash("holdout", *identity),
                    document.prompt + document.text,
                    document.prompt + document.text,
                    document.prompt,
                    row.result.group,
                    document.family,
                    reason=document.reason,
                )
                if not document.reason and is_blocked(document.columns, options):
                    expected.fates[key].reason = "url-blocklist"
    for fate in expected.fates.values():
        if not fate.reason:
            _judge(fate, options, labels.get(fate.key, (None, None)))
    _deduplicate([*expected.fates.values()], options, seen)
    return expected


def is_blocked(columns: Mapping[str, Any], options: Options) -> bool:
    """Return whether the blocklist, which contains whole domains, blocks the page's URL."""
    host = re.match(r"https://([^/]+)/", str(columns.get("url", "")))
    return host is not None and host[1] in options["blocked"]


def _without_controls(text: str) -> str:
    text = re.sub("\x1b" + r"\[[\d;]*[A-Za-z]", _gap, text)
    return "".join(char for char in text if ord(char) not in CONTROL_CHARS)


def _gap(escape: re.Match[str]) -> str:
    before, after = escape.string[: escape.start()], escape.string[escape.end() :]
    return " " if before[-1:].isalnum() and after[:1].isalnum() else ""


_CODE = re.compile(
    r"</?[A-Za-z][^<>\n]{0,300}>|&lt;b(?: (?:(?!&lt;)[^\n]){0,300}?)?&gt;|^[ \t]*\"RECORDS\": ",
    re.MULTILINE,
)


def _repaired(text: str) -> str:
    """Return a repaired text; tags and a JSON field are the only code in the texts of texts.py."""
    end = text.find("<") if "<" in text else len(text)
    if _CODE.search(text):
        end = 0
    end = end if end == len(text) else text.rfind("\n", 0, end) + 1
    return ftfy.fix_text(_without_controls(unescape_html(text[:end]) + text[end:]), FTFY_CONFIG)


def _judge(fate: Fate, options: Options, label: tuple[str | None, float | None]) -> None:
    """Clean a document, and set the reason for dropping it if a rule does."""
    clean = _without_controls if fate.group == "Github" else _repaired
    prompt, text = clean(fate.prompt), clean(fate.raw[len(fate.prompt) :])
    fate.repaired = prompt + text != fate.raw
    fate.prompt, fate.text = prompt, prompt + text
    if not text.strip():
        fate.reason = "empty"
        return
    language, score = label
    languages = str(options["languages"]).split(",")
    if languages != ["all"] and language is not None and language not in languages:
        fate.reason = "language"
    elif score is not None and score < options["language_threshold"]:
        fate.reason = "language-score"
    elif len(text) < options["glm_chars"]:
        fate.reason = "glm-few-chars"
    elif options["decontaminate"] and is_contaminated(text):
        fate.reason = "contaminated"


def is_contaminated(text: str) -> bool:
    """Return whether a text contains 13 consecutive words of the planted line."""
    words = _words(text)
    planted = _words(PLANTED)
    runs = {tuple(planted[at : at + 13]) for at in range(len(planted) - 12)}
    return any(tuple(words[at : at + 13]) in runs for at in range(len(words) - 12))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower().replace("'", ""))


def _deduplicate(fates: Sequence[Fate], options: Options, seen: SeenDocuments) -> None:
    if options["dedup"] == "none":
        return
    reached = sorted((fate for fate in fates if not fate.reason), key=lambda fate: fate.order)
    for fate in reached:
        folded = " ".join(fate.text.split())
        if folded in seen.texts:
            fate.reason = "duplicate"
        elif options["dedup"] == "minhash":
            fate.may_be_near = fate.family < 0 or fate.family in seen.families
        seen.texts.add(folded)
        seen.families.add(fate.family)


def hold_out(kept: Sequence[Fate], options: Options) -> None:
    """Mark the validation documents of a source, given all documents that it keeps."""
    share = options["validation"]
    most = int(len(kept) * 0.05)
    if not share or not most:
        return
    hashes = sorted(fate.holdout for fate in kept)
    within = sum(value < int(share * 2**64) for value in hashes)
    wanted = min(max(within, 32), most)
    bound = int(share * 2**64) if wanted == within else hashes[wanted]
    for fate in kept:
        fate.held_out = fate.holdout < bound


def account(expected: Expected, source: str) -> dict[str, Any]:
    """Return the account of a source, in the manifest's format."""
    fates = [fate for fate in expected.fates.values() if fate.key[0] == source]
    by: dict[str, Counter[str]] = defaultdict(Counter)
    sizes: Counter[str] = Counter()
    for fate in fates:
        by[fate.verdict][fate.reason] += 1
        sizes[fate.verdict] += len(fate.raw.encode())
    return {
        "read": len(fates),
        "kept": by["kept"][""],
        "dropped": dict(by["dropped"]),
        "quarantined": dict(by["quarantined"]),
        "fanned_out": expected.fanned_out[source],
        "not_sampled": expected.not_sampled[source],
        "bytes": {verdict: sizes[verdict] for verdict in ("kept", "dropped", "quarantined")},
    }
