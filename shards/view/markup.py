"""HTML in which no text is obeyed: whatever is not Markup is escaped, and what is hidden is shown.

    tag("p", "1 < 2 ", tag("b", name))   <p>1 &lt; 2 <b>…</b></p>

Only `tag` and `joined` make Markup, and adding or formatting Markup gives a plain string, which is
escaped again: a mistake here shows as text on the page, never as an element of it.
"""

from collections.abc import Iterable, Mapping
from html import escape
from typing import TypeAlias
from urllib.parse import urlencode

from shards.shown import visible

Child: TypeAlias = "str | int | float | Iterable[Child] | None"
"""What can stand in an element."""

_VOID = frozenset({"br", "hr", "input", "link", "meta"})


class Markup(str):
    """HTML that is safe to send."""

    __slots__ = ()


class Address(str):
    """The address of a page of this viewer: nothing else can be linked to."""

    __slots__ = ()


def address(path: str, values: Mapping[str, object] | None = None, *, part: str = "") -> Address:
    """Return an address.

    Args:
        path: Of the page, as it stands in the table of pages.
        values: What it asks for; values that are None or empty are left out.
        part: The id of an element of the page.
    """
    given = {name: value for name, value in (values or {}).items() if value not in (None, "")}
    query = f"?{urlencode(given)}" if given else ""
    return Address(f"/{path}{query}{f'#{part}' if part else ''}")


def tag(name: str, /, *children: Child, **attributes: str | int | None) -> Markup:
    """Return an element.

    Args:
        name: Of the element.
        children: What is in it; text is escaped.
        attributes: By name, with underscores for hyphens and one at the end of a word of Python;
            None is left out. An address (`href`, `action`) is one of this viewer.
    """
    given = "".join(
        f' {_name(key)}="{_escaped(str(value))}"'
        for key, value in attributes.items()
        if value is not None and _allowed(key, value)
    )
    end = "" if name in _VOID else f"{joined(*children)}</{name}>"
    return Markup(f"<{name}{given}>{end}")


def joined(*children: Child) -> Markup:
    """Return children one after the other."""
    return Markup("".join(_rendered(child) for child in children))


def between(before: str, text: str, after: str) -> Markup:
    """Return a text as it is shown between two others: a joiner may belong to all of them."""
    left, right = (each if visible(each) == each else "" for each in (before[-1:], after[:1]))
    shown = visible(left + text + right)
    return Markup(escape(shown[len(left) : len(shown) - len(right)]))


def link(to: Address, *children: Child, **attributes: str | int | None) -> Markup:
    """Return a link to a page of this viewer."""
    return tag("a", *children, href=to, **attributes)


def _rendered(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int | float):
        return _escaped(str(child))
    return joined(*child)


def _escaped(text: str) -> str:
    return escape(visible(text))


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _allowed(key: str, value: object) -> bool:
    if key in ("href", "action") and not isinstance(value, Address):
        raise TypeError(f"{key} is {value!r}, which is no address of the viewer")
    return True
