"""HTML made of elements: text is escaped unless it is Markup, so no text can become code."""

import html
import re

_C0 = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_HIDDEN = {
    *range(0x80, 0xA0),  # C1 controls
    0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A),  # change the direction
    0x2028, 0x2029, 0xFEFF,
    *range(0xFDD0, 0xFDF0), *(plane << 16 | low for plane in range(17) for low in (0xFFFE, 0xFFFF)),
}  # fmt: skip
_SHOWN = {**_C0, 0x7F: "\u2421", **{code: f"\u2039U+{code:04X}\u203a" for code in _HIDDEN}}

_VOID = {"meta", "br", "wbr"}
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def visible(text: str) -> str:
    """Return a text with signs in place of what would act unseen: controls, changes of direction.

    Line breaks and tabs stay.
    """
    return text.translate(_SHOWN)


def escaped(text: str) -> Markup:
    """Return a text as HTML that shows it; Markup stays as it is."""
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(visible(text)))


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element.

    Args:
        name: Of the element.
        children: Markup, or text.
        attributes: Those that are None are left out. `class_` is the attribute class, other
            underscores are hyphens.
    """
    told = "".join(
        f' {_attribute(key)}="{escaped(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{joined(*children)}</{name}>")


def joined(*parts: str) -> Markup:
    """Return texts and Markup one behind the other."""
    return Markup("".join(escaped(part) for part in parts))


def _attribute(key: str) -> str:
    name = key.rstrip("_").replace("_", "-")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{key!r} is no name of an attribute")
    return name
