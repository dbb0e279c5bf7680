"""What must not be shown: passwords and signatures in addresses, keys, variables that hold either.

    scheme://user:password@host/path;parameters?query#fragment
             ─────────────          ──────────────────────────
    hidden     by its @                by the sign before it

Addresses come in more forms than any parser accepts: what a person mistyped still has a password in
it. So an address is cut by its signs alone, and rather too much of it is hidden than too little.

`masked` is for whole messages. Libraries quote addresses in parts, so it also knows the secrets of
this process: those of its command line and its environment.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePath
from urllib.parse import quote, unquote

HIDDEN = "***"
"""What a message has in place of a secret that is no part of an address."""

_START = re.compile(
    # What a path makes of an address has one slash.
    r"(?<![a-z0-9+.-])(?:[a-z][a-z0-9+.-]*:/|(?:https?|s3a?|gcs|gs|abfss?|ftps?|sftp):)/+",
    re.IGNORECASE,
)
_WEB = re.compile("https?:", re.IGNORECASE)
_COLON = re.compile(":|%3a", re.IGNORECASE)
_PORT = re.compile(r"(?:\[[^\]]*\]|[^:@]*):[0-9]*")

_SECRET = (
    r"(?:[\w.-]*(?:secret|token|passw(?:or)?d|signature|credentials?|authorization|"
    r"(?:access|account|api|private|secret|shared)[-_.]?key(?:[-_.]?id)?)"
    r"|(?:[\w.-]*[-_.])?(?:jwt|pwd|sas|sig))"
)
"""The name of a parameter that holds a secret."""
_CUT_WEB = re.compile("[?#;]|%3f|%23|%3b", re.IGNORECASE)
_CUT = re.compile(r"[?#;][^/?#;=]*=")
"""In other protocols than the web's a question mark may be part of a name, or a wildcard."""
_REFUSED_WEB = re.compile(r"[?#]|;[^/;=]*=")
_REFUSED = re.compile(rf"[?#;&](?:{_SECRET}|\w*key|auth|code|delegation)=", re.IGNORECASE)

_PARAMETER_END = re.compile("[?#;&]")
_NAMELESS = re.compile("[?#]([^=]+=*)$")
"""A query or a fragment that names nothing."""

_IN_TEXT = re.compile(rf"{_START.pattern}[^\s\"'<>]*[^\s\"'<>).,:;\]}}]", re.IGNORECASE)
_NUMBER = r"[-+]?[0-9]{1,15}(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?(?=[\s&;\"'<>),\]}]|\.?(?:\s|$))"
_NAMED = re.compile(
    # A number of tokens, or for each token, is no secret.
    rf"(?<![\w.-])({_SECRET})(=|%3D)(?!(?<=token=){_NUMBER})[^\s&;\"'<>)]+",
    re.IGNORECASE,
)
_CERTAIN = (
    r"[\w.-]*(?:passw(?:or)?d|authorization|(?:auth|access|api|hf|session)[-_.]?token|"
    r"(?:access|account|api|private|secret|shared)[-_.]?key(?:[-_.]?id)?)"
)
"""The name of a header or a field that holds a secret, in prose as well."""
_FIELD = re.compile(
    rf"""((?:(?<![\w.-]){_CERTAIN}|(\\?["'])(?:{_CERTAIN}|[\w.-]*secret|credentials?)\2)"""
    r"""\s*:[ \t]*)(?:(\\?["'])(?:(?!\3)(?:\\.|[^\\\n]))*\3"""
    r"""|(?:(?:basic|bearer|digest|token) +)?[^\s,;&"'<>)}\]]+)""",
    re.IGNORECASE,
)
_KEYS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{30,}|(?:AKIA|ASIA)[0-9A-Z]{12,})\b"
    r"|\bAIza[\w-]{30,}|\bsk-[\w-]{20,}|(?<=Bearer )[\w.~+/=-]{8,}"
    # User and password in base 64, which has capitals within.
    r"|(?<=Basic )(?=[\w+/-]+[A-Z0-9])[\w+/-]{8,}=*"
    # A secret key of AWS; hashes of 40 figures have no capitals, and paths have words.
    r"|(?<![\w.+/=-])(?:(?<=(?i:aws|key)[ :])|(?<=(?i:secret)[ :])"
    r"|(?!(?:[A-Za-z0-9+]+/)*[A-Za-z][a-z]{3,}[0-9]*(?![A-Za-z0-9+])))(?=[a-z0-9+/]*[A-Z])(?=[A-Z0-9+/]*[a-z])(?=[A-Za-z+/]*[0-9])"
    r"[A-Za-z0-9+][A-Za-z0-9+/]{39}(?![\w+/=-]|\.\w)"
)
"""Keys that are known by their form: Hugging Face, GitHub, AWS, Google, OpenAI and the like."""

_VARIABLE = re.compile(
    "(?:.*_)?(?:SECRET|PASSWORD|PASSWD|SIGNATURE|SAS|CONNECTION_STRING"
    "|(?:ACCESS|ACCOUNT|API|PRIVATE|SHARED)_KEY|(?:ACCESS|API|AUTH|HF|HUB|SESSION)_TOKEN)"
    "(?:_ID|_KEY)?"
)
"""The name of a variable that holds a secret, not the path of one."""
_VARIABLE_OF_KEY = re.compile("(?:.*_)?(?:TOKEN|KEY)(?:_ID|_KEY)?")
"""The name of a variable that holds a secret or a word, as `PARTITION_KEY` and `EOS_TOKEN` do."""
_LEAST_VALUE = 8
"""Characters of a variable that is taken for a secret."""
_LEAST_PART = 4
"""Characters of a part of a secret that is looked for as in an address; twice as long, anywhere."""
_SIGNS = r"[@:/?#;&=\s\"'<>]+"
"""Where libraries cut what they take for an address."""

_MOST_CUTS = 16
"""Of a password or parameters, after which the rest is looked for as well."""

_OF_DOCUMENTS = ("--id", "--url", "--document")
"""Flags whose addresses are names of documents: nothing is read from there."""


def without_secrets(url: str) -> str:
    """Return an address without user, password, parameters, query and fragment.

    Where these may be part of a name, as the wildcard `?` of S3, they are left out only if they
    look like a parameter. A text that is no address is returned as it is.
    """
    return _changed(url, _plain)


def has_user(url: str) -> bool:
    """Return whether an address, or one within it, has a password, or in the web a user.

    `host:80/a@b` has none.
    """
    return any(
        _user_end(rest, is_web=is_web) > 0 and not _has_port_only(rest)
        for rest, is_web in _remainders(url)
    )


def has_parameters(url: str) -> bool:
    """Return whether an address has parameters, a query or a fragment that may be a secret."""
    return (_REFUSED_WEB if _WEB.match(url) else _REFUSED).search(url) is not None


def _changed(url: str, change: Callable[[str, bool], str]) -> str:
    """Return an address with `change` made to what follows `scheme://`, there and within it."""
    done, rest = "", url
    while start := _START.search(rest):
        done += rest[: start.end()]
        rest = change(rest[start.end() :], _is_web(start))
    return done + rest


def _remainders(url: str) -> Iterator[tuple[str, bool]]:
    """Yield what follows each `scheme://` of an address, and whether it is one of the web's."""
    return ((url[start.end() :], _is_web(start)) for start in _START.finditer(url))


def _is_web(start: re.Match[str]) -> bool:
    return _WEB.match(start[0]) is not None


def _plain(rest: str, is_web: bool) -> str:
    return (_CUT_WEB if is_web else _CUT).split(_without_user(rest, is_web), maxsplit=1)[0]


def _without_user(rest: str, is_web: bool) -> str:
    """Return what follows `scheme://` without user and password."""
    end = _user_end(rest, is_web=is_web)
    if end and _has_port_only(rest):  # `host:80/a@b`, or a password that begins with digits
        return f"{rest.partition(':')[0]}:…@{rest[end:]}"
    return rest[end:]


def _user_end(rest: str, *, is_web: bool) -> int:
    """Return where user and password end in what follows `scheme://`; 0 if there are none.

    A password may contain any sign, an @ or a slash as well.
    """
    first = rest.partition("/")[0]
    user = first.partition("@")[0]
    if _COLON.search(user):
        return rest.rfind("@") + 1
    return first.rfind("@") + 1 if is_web else 0


def _has_port_only(rest: str) -> bool:
    return _PORT.fullmatch(re.split("[/?#]", rest, maxsplit=1)[0]) is not None


def masked(text: str) -> str:
    """Return a message without the secrets in it.

    Those of this process's command line and environment are known and left out wherever they
    stand, also in parts; others are known by their form. An address keeps its query, which may tell
    documents apart, but for parameters with the name of a secret.
    """
    pattern, instead = _known(tuple(_words()), tuple(_values()))
    if pattern is not None:
        text = pattern.sub(lambda match: instead.get(match[0].lower(), HIDDEN), text)
    text = _IN_TEXT.sub(lambda match: _changed(match[0], _without_user), text)
    text = _FIELD.sub(lambda match: f"{match[1]}{match[3] or ''}{HIDDEN}{match[3] or ''}", text)
    return _KEYS.sub(HIDDEN, _NAMED.sub(rf"\1\2{HIDDEN}", text))


def without_addresses(text: str) -> str:
    """Return the message of a library with what may be shown of each address in it."""
    return masked(_IN_TEXT.sub(lambda match: without_secrets(match[0]), text))


def _words() -> Iterator[str]:
    """Yield the words of the command line that may hold a secret."""
    flag = ""
    for word in sys.argv[1:]:
        name, equals, _ = word.partition("=")
        if flag not in _OF_DOCUMENTS and not (equals and name in _OF_DOCUMENTS):
            yield word
        flag = word


def _values() -> Iterator[str]:
    """Yield the values of the environment that are secrets, and addresses with passwords."""
    for name, value in os.environ.items():
        is_named = _VARIABLE.fullmatch(name.upper()) is not None
        is_secret = (
            len(value) >= _LEAST_VALUE
            and (is_named or (_VARIABLE_OF_KEY.fullmatch(name.upper()) and _is_random(value)))
            and not (value.startswith("/") and Path(value).exists())
        )
        if is_secret or ("://" in value and has_user(value)):
            yield value


@lru_cache(maxsize=1)
def _known(
    words: tuple[str, ...], values: tuple[str, ...]
) -> tuple[re.Pattern[str] | None, dict[str, str]]:
    """Return a pattern of the secrets of a process, and what stands for those that are addresses.

    The keys are in small letters, since hosts and schemes are often written so.
    """
    instead = dict(pair for word in (*words, *values) for pair in _replacements(word))
    parts = {part for word in (*words, *values) for part in _parts(word)}
    parts |= {value for value in values if _START.search(value) is None}
    whole = {form for text in instead for form in _forms(text)}
    instead = {form.lower(): HIDDEN for form in whole} | {
        text.lower(): shown for text, shown in instead.items()
    }
    spelt = {form for part in parts for form in _forms(part)} | whole | instead.keys()
    if not spelt:
        return None, {}
    longest_first = sorted(spelt, key=lambda text: (-len(text), text))
    return re.compile("|".join(map(_alone, longest_first)), re.IGNORECASE), instead


def _replacements(word: str) -> Iterator[tuple[str, str]]:
    """Yield the address in a word, as it may be quoted, and what is shown instead."""
    start = _START.search(word)
    if start is None:
        return
    url = word[start.start() :]
    for form in (url, str(PurePath(url))):
        shown = without_secrets(form)
        if shown != form:
            yield form, shown
    # Libraries leave the protocol out.
    bare, shown = url[len(start[0]) :], without_secrets(url)
    if shown != url:
        yield bare, shown[len(start[0]) :]


def _parts(word: str) -> Iterator[str]:
    """Yield the secrets in the address of a word, whole and in the parts that libraries see."""
    for rest, is_web in _remainders(word):
        end = _user_end(rest, is_web=is_web)
        password = _COLON.split(rest[:end].removesuffix("@"), maxsplit=1)[-1]
        cuts = islice(re.finditer("[@:/]", password), _MOST_CUTS)
        ends = [password[cut.end() :] for cut in cuts]
        pieces = (*re.split("[@:/]", password), *re.split(_SIGNS, password))
        yield from _long_enough([password, *ends, *pieces])
        yield from _long_enough(_parameters(rest[end:]))
        if is_web and (nameless := _NAMELESS.search(rest, end)):
            texts = (nameless[1], *_PARAMETER_END.split(nameless[1]))
            yield from filter(_is_random, texts)


def _parameters(rest: str) -> Iterator[str]:
    """Yield the values of parameters that are secrets by name, which may hold any sign."""
    for number, name in enumerate(_REFUSED.finditer(rest)):
        yield _PARAMETER_END.split(rest[name.end() :], maxsplit=1)[0]
        if number < _MOST_CUTS:
            yield rest[name.end() :]


def _is_random(text: str) -> bool:
    """Return whether a text may be a key rather than a word."""
    has_both_cases = text != text.lower() and text != text.upper()
    return (
        len(text) >= _LEAST_VALUE
        and (has_both_cases or re.search("[0-9]", text) is not None)
        and not (text.startswith("<") and text.endswith(">"))
    )


def _long_enough(texts: Iterable[str]) -> Iterator[str]:
    return (text for text in texts if len(text) >= _LEAST_PART)


def _forms(text: str) -> set[str]:
    """Return a secret as it may be spelt in a message."""
    quoted = {quote(text, safe=safe, errors="replace") for safe in ("", "/")}
    return {text, repr(text)[1:-1], unquote(text), *quoted} - {""}


def _alone(text: str) -> str:
    """Return the pattern of a text; a short one counts only as in an address, or in quotes.

    Many a short one is a word, too.
    """
    pattern = re.escape(text)
    if len(text) >= 2 * _LEAST_PART:
        return pattern
    return (
        rf"(?:(?<=[:@/'\"]){pattern}(?![A-Za-z0-9])"
        rf"|(?<![A-Za-z0-9]){pattern}(?=[@/'\"]|:\S))"
    )
