"""Finds and cuts off passwords and signatures in addresses; `storage.address` refuses them.

    scheme://user:password@host/path;parameters?query#fragment
             ─────────────          ──────────────────────────
    cut off    by its @                by the sign before it

Addresses come in more forms than any parser accepts, and even a mistyped one contains its password.
So an address is cut at its punctuation alone, and too much is cut off rather than too little.
"""

import re

_ADDRESS = r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*:/+"
_WEB = re.compile("https?:", re.IGNORECASE)
_USER = re.compile(
    # A password may contain any sign, an @ or a slash as well; `host:80/a@b` has a port.
    rf"({_ADDRESS})(?!(?:\[[^\]]*\]|[^\s/@:]*):[0-9]*(?:[/?#]|\Z))[^\s/@:]*(?::|%3a)[^\s\"'<>]*@"
    r"|(https?:/+)[^\s/@]*@",
    re.IGNORECASE,
)
"""Matches a user with a password; in web addresses, also a user alone."""

_SECRET = (
    r"(?:[\w.-]*(?:secret|token|passw(?:or)?d|signature|credentials?|authorization|"
    r"(?:access|account|api|private|secret|shared)[-_.]?key(?:[-_.]?id)?)"
    r"|(?:[\w.-]*[-_.])?(?:jwt|pwd|sas|sig))"
)
"""Matches the name of a parameter that holds a secret."""
_CUT_WEB = re.compile("[?#;]|%3f|%23|%3b", re.IGNORECASE)
_CUT = re.compile(r"[?#;][^/?#;=]*=")
"""Matches where to cut outside web protocols: a `?` may be part of a name, or a wildcard."""
_REFUSED_WEB = re.compile(r"[?#]|;[^/;=]*=")
_REFUSED = re.compile(rf"[?#;&](?:{_SECRET}|\w*key|auth|code|delegation)=", re.IGNORECASE)


def without_secrets(url: str) -> str:
    """Return an address without user, password, parameters, query and fragment.

    Where a sign may be part of a name, such as the wildcard `?` of S3, the text after it is left
    out only if it looks like a parameter. A text that is not an address is returned unchanged.
    """
    if ":/" not in url:
        return url
    cut = _CUT_WEB if _WEB.search(url) else _CUT
    return cut.split(_USER.sub(r"\1\2", url), maxsplit=1)[0]


def has_user(url: str) -> bool:
    """Return whether an address, or one within it, has a password or, for web addresses, a user.

    `host:80/a@b` has neither.
    """
    return _USER.search(url) is not None


def has_parameters(url: str) -> bool:
    """Return whether an address has parameters, a query or a fragment that may be a secret."""
    return (_REFUSED_WEB if _WEB.match(url) else _REFUSED).search(url) is not None
