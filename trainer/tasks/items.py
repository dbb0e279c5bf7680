"""Items of task files: JSON lines, read with errors that name file and line."""

import json
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any

from shards.errors import UserError
from trainer.json_file import parse

_NAMES = ("idx", "id")
"""The fields that name an item."""
_SOURCES = ".source"


@dataclass(frozen=True, kw_only=True, eq=False)
class Item:
    """An object of a file."""

    fields: Mapping[str, Any]
    path: Path
    line: int
    """Where it begins, from 1 on."""

    @property
    def where(self) -> str:
        """Return what errors begin with."""
        return f"{self.path}, line {self.line}"

    def wrong(self, message: str) -> UserError:
        """Return an error about this item."""
        return UserError(f"{self.where}: {message}")

    def has(self, *keys: str) -> bool:
        """Return whether there is a field, below others."""
        value: Any = self.fields
        for key in keys:
            if not isinstance(value, Mapping) or key not in value:
                return False
            value = value[key]
        return True

    def value(self, *keys: str) -> Any:
        """Return a field, below others.

        Raises:
            UserError: it is not there.
        """
        if not self.has(*keys):
            raise self.wrong(
                f'there is no field "{".".join(keys)}". Expected it among '
                f"{', '.join(map(str, self.fields)) or 'no fields at all'}: correct the file, or "
                "see whether it is the task's."
            )
        value: Any = self.fields
        for key in keys:
            value = value[key]
        return value

    def text(self, *keys: str) -> str:
        """Return a field that is a text; UserError where it is none."""
        value: str = self._typed(str, "a text", keys)
        return value

    def shown(self, name: str) -> str:
        """Return a field as a text stands for it, `outer.inner` below another; numbers are texts.

        Raises:
            UserError: it is neither, or not there.
        """
        keys = (name,) if self.has(name) else tuple(name.split("."))
        value = self.value(*keys)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return str(value) if is_number else self.text(*keys)

    def words(self, *keys: str) -> str:
        """Return a field that is a text and not blank; UserError where it is none."""
        value = self.text(*keys)
        if not value.strip():
            raise self.wrong(f'the field "{".".join(keys)}" is {value!r}. Expected words.')
        return value

    def number(self, *keys: str) -> int:
        """Return a field that is a whole number; UserError where it is none."""
        value: int = self._typed(int, "a whole number", keys)
        return value

    def name(self, *keys: str) -> int | str:
        """Return a field that names the item; UserError where it is no whole number or text."""
        value: int | str = self._typed(int | str, "a whole number or a text", keys)
        return value

    def parts(self, *keys: str) -> "list[Item]":
        """Return the objects of a list; UserError where it is no such list."""
        values = self._typed(list, "a list of objects", keys)
        if not all(isinstance(value, dict) for value in values):
            raise self.wrong(f'the field "{".".join(keys)}" holds something else than objects.')
        return [Item(fields=value, path=self.path, line=self.line) for value in values]

    def label(self, labels: Sequence[object], *, is_needed: bool, key: str = "label") -> int | None:
        """Return the number of the item's label, None where it has none.

        Args:
            labels: those that the task knows.
            is_needed: an item without one is an error.
            key: the field.

        Raises:
            UserError: it is not among them, or missing.
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

    def _typed(self, expected: type | UnionType, name: str, keys: tuple[str, ...]) -> Any:
        value = self.value(*keys)
        if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
            raise self.wrong(
                f'the field "{".".join(keys)}" is {reprlib.repr(value)}. Expected {name}.'
            )
        return value


def read_items(path: Path) -> list[Item]:
    """Return the objects of a file of JSON lines; blank lines are none.

    Of a file NAME.source the lines are the field source, and those of NAME.target beside it, if
    there is one, the field target.

    Raises:
        UserError: the file cannot be read, or a line of it is no JSON object.
    """
    if path.suffix == _SOURCES:
        return _read_pairs(path, path.with_suffix(".target"))
    return [
        _item(line, path, number)
        for number, line in enumerate(read_text(path).split("\n"), start=1)
        if line.strip()
    ]


def _read_pairs(path: Path, beside: Path) -> list[Item]:
    columns = {"source": path} | ({"target": beside} if beside.exists() else {})
    lines = [read_text(one).removesuffix("\n").split("\n") for one in columns.values()]
    if len({*map(len, lines)}) > 1:
        raise UserError(
            f"{path} has {len(lines[0]):,} lines and {beside} {len(lines[1]):,}: each source needs "
            "its target in the line of the same number."
        )
    return [
        Item(fields=dict(zip(columns, texts, strict=True)), path=path, line=number)
        for number, texts in enumerate(zip(*lines, strict=True), start=1)
    ]


def read_some_items(path: Path) -> list[Item]:
    """Return the objects of a file of JSON lines, at least one.

    Raises:
        UserError: as for `read_items`, or there are none.
    """
    if items := read_items(path):
        return items
    raise UserError(f"{path} holds nothing. Expected an object a line, as the task has it.")


def names_of(items: Sequence[Item]) -> list[Any]:
    """Return what each item calls itself, by which its prediction is told from others.

    That is its idx or id; without any it is the item's number in the file, from 0 on.

    Raises:
        UserError: two items have the same name.
    """
    names: list[Any] = []
    lines: dict[str, int] = {}
    for number, item in enumerate(items):
        key = next((key for key in _NAMES if item.fields.get(key) is not None), None)
        names.append(number if key is None else item.fields[key])
        shown = json.dumps(names[-1], sort_keys=True)
        if shown in lines:
            what = f'the field "{key}" is' if key else "without a name its number is"
            raise item.wrong(
                f"{what} {reprlib.repr(names[-1])}, which names line {lines[shown]} too: nobody "
                f'could tell their predictions apart. Give each item its own "{_NAMES[0]}", or '
                "leave it out of all."
            )
        lines[shown] = item.line
    return names


def read_text(path: Path) -> str:
    """Return a file's text, UTF-8.

    Raises:
        UserError: there is no such file, or it cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not UTF-8: its byte {error.start:,} is {error.object[error.start]:#04x}. "
            "Expected a file of JSON in UTF-8."
        ) from error


def _item(text: str, path: Path, line: int) -> Item:
    try:
        fields = parse(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}, line {line}: this is not valid JSON ({error}).") from error
    if not isinstance(fields, dict):
        raise UserError(
            f"{path}, line {line}: this is {reprlib.repr(fields)}. Expected an object, {{…}}."
        )
    return Item(fields=fields, path=path, line=line)


def _shown(label: object) -> str:
    """Return a label as JSON has it, a text without its quotes."""
    return label if isinstance(label, str) else json.dumps(label)
