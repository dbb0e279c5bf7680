"""Reads the items of task files; errors name the file and the line."""

import json
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import getitem
from pathlib import Path
from types import UnionType
from typing import Any

from shards.errors import UserError
from trainer.json_file import parse

_SOURCES = ".source"
NAME = int | str
"""The type of fields that name something."""
_EXPECTED = {
    str: "a text",
    int: "a whole number",
    NAME: "a whole number or a text",
    list: "a list of objects",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Item:
    """An item of a task file, which is a JSON object."""

    fields: Mapping[str, Any]
    path: Path
    place: str
    """The place in the file, such as line 3, or item 3 of an array."""

    def wrong(self, message: str) -> UserError:
        """Return an error about this item."""
        return UserError(f"{self.path}, {self.place}: {message}")

    def has(self, *keys: str) -> bool:
        """Return whether there is a field; several keys name a nested field."""
        try:
            reduce(getitem, keys, self.fields)
        except (KeyError, TypeError):
            return False
        return True

    def value(self, *keys: str, of: type | UnionType = object) -> Any:
        """Return the value of a field; several keys name a nested field.

        Raises:
            UserError: the field is missing, or its value does not have the type `of`.
        """
        name = ".".join(keys)
        if not self.has(*keys):
            raise self.wrong(
                f'there is no field "{name}"; the fields are '
                f"{', '.join(map(str, self.fields)) or 'none'}. Correct the file, or check that it "
                "belongs to this task."
            )
        value: Any = reduce(getitem, keys, self.fields)
        if not isinstance(value, of) or (isinstance(value, bool) and of is not object):
            raise self.wrong(
                f'the field "{name}" is {reprlib.repr(value)}. Expected {_EXPECTED[of]}.'
            )
        return value

    def text(self, *keys: str) -> str:
        """Return the value of a field that must be a text.

        Raises:
            UserError: the field is missing, or is not a text.
        """
        return str(self.value(*keys, of=str))

    def shown(self, name: str) -> str:
        """Return a field, or a nested field `outer.inner`, as text; numbers are converted to text.

        Raises:
            UserError: the field is neither text nor a number, or is missing.
        """
        keys = (name,) if self.has(name) else tuple(name.split("."))
        value = self.value(*keys)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return str(value) if is_number else self.text(*keys)

    def name(self, number: int) -> Any:
        """Return the item's name, which is its idx or id; if it has neither, return `number`."""
        given = (self.fields.get(key) for key in ("idx", "id"))
        return next((name for name in given if name is not None), number)

    def parts(self, *keys: str) -> "list[Item]":
        """Return the objects in a list as items; raise a UserError for any other value."""
        values = self.value(*keys, of=list)
        if not all(isinstance(value, dict) for value in values):
            raise self.wrong(f'the field "{".".join(keys)}" contains values that are not objects.')
        return [replace(self, fields=value) for value in values]

    def label(self, labels: Sequence[object], *, is_needed: bool, key: str = "label") -> int | None:
        """Return the number of the item's label; None if the item has no label.

        Args:
            labels: the labels of the task.
            is_needed: whether an item must have a label.
            key: the field of the label.

        Raises:
            UserError: the label is unknown, or missing although it is needed.
        """
        known = [_shown(label) for label in labels]
        if self.fields.get(key) is None:
            if is_needed:
                raise self.wrong(
                    f'there is no field "{key}", and the answer is needed. Expected one of '
                    f"{', '.join(known)}."
                )
            return None
        given = _shown(self.fields[key])
        found = [i for i, label in enumerate(known) if label == given]
        found = found or [i for i, label in enumerate(known) if label.lower() == given.lower()]
        if len(found) != 1:
            raise self.wrong(
                f'the field "{key}" is {reprlib.repr(self.fields[key])}, which the task does not '
                f"know. Expected one of {', '.join(known)}."
            )
        return found[0]


def read_items(path: Path) -> list[Item]:
    """Return the objects in a file of JSON lines or a JSON array; blank lines are skipped.

    The lines of a file NAME.source become the field `source`, and the lines of NAME.target next to
    it, if there is such a file, become the field `target`.

    Raises:
        UserError: the file cannot be read, or a line is not a JSON object.
    """
    if path.suffix == _SOURCES:
        return _read_pairs(path, path.with_suffix(".target"))
    text = read_text(path)
    if text.lstrip().startswith("["):
        return [_item(one, path, f"item {i}") for i, one in enumerate(_parsed(text, path), start=1)]
    lines = ((f"line {i}", line) for i, line in enumerate(text.split("\n"), start=1))
    return [
        _item(_parsed(line, f"{path}, {place}"), path, place)
        for place, line in lines
        if line.strip()
    ]


def _read_pairs(path: Path, targets: Path) -> list[Item]:
    columns = {"source": path} | ({"target": targets} if targets.exists() else {})
    lines = [read_text(one).removesuffix("\n").split("\n") for one in columns.values()]
    if len({*map(len, lines)}) > 1:
        raise UserError(
            f"{path} has {len(lines[0]):,} lines and {targets} {len(lines[1]):,}: each source "
            "needs its target in the line of the same number."
        )
    return [
        Item(fields=dict(zip(columns, texts, strict=True)), path=path, place=f"line {number}")
        for number, texts in enumerate(zip(*lines, strict=True), start=1)
    ]


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file.

    Raises:
        UserError: the file cannot be read, or is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not UTF-8: its byte {error.start:,} is {error.object[error.start]:#04x}. "
            "Save the file in UTF-8."
        ) from error


def _parsed(text: str, where: object) -> Any:
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: this is not valid JSON ({error}).") from error


def _item(fields: Any, path: Path, place: str) -> Item:
    if not isinstance(fields, dict):
        raise UserError(
            f"{path}, {place}: this is {reprlib.repr(fields)}. Expected an object, {{…}}."
        )
    return Item(fields=fields, path=path, place=place)


def _shown(label: object) -> str:
    """Return a label as JSON, but a text without quotes."""
    return label if isinstance(label, str) else json.dumps(label)
