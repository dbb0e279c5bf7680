"""Passwords and signatures in addresses: found, refused by `shards.storage.address`, and not shown.

    scheme://user:password@host/path;parameters?query#fragment
             ─────────────          ──────────────────────────
    hidden     by its @                by the sign before it

Addresses come in more forms than any parser accepts: what a person mistyped still has a password in
it. So an address is cut by its signs alone, and rather too much of it is hidden than too little.
"""

import re
from collections.abc import Callable, Iterator

HIDDEN = "***"
"""What a message has in place of a secret parameter."""

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

_IN_TEXT = re.compile(rf"{_START.pattern}[^\s\"'<>]*[^\s\"'<>).,:;\]}}]", re.IGNORECASE)
_NUMBER = r"[-+]?[0-9]{1,15}(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?(?=[\s&;\"'<>),\]}]|\.?(?:\s|$))"
_NAMED = re.compile(
    # A number of tokens, or for each token, is no secret.
    rf"(?<![\w.-])({_SECRET})(=|%3D)(?!(?<=token=){_NUMBER})[^\s&;\"'<>)]+",
    re.IGNORECASE,
)


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
    """Return a message in which addresses have no passwords, and named parameters no secrets.

    An address keeps the rest of its query, which may tell documents apart.
    """
    text = _IN_TEXT.sub(lambda match: _changed(match[0], _without_user), text)
    return _NAMED.sub(rf"\1\2{HIDDEN}", text)


def without_addresses(text: str) -> str:
    """Return the message of a library with what may be shown of each address in it."""
    return masked(_IN_TEXT.sub(lambda match: without_secrets(match[0]), text))
