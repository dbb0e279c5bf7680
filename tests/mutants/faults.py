"""Finds the one-line faults that a Python file can have: the places, and the new code there."""

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.places import GUARDS, WORDS, Place, places_of

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_TEXTS = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
"""Kinds of operands that `+` concatenates; a minus would always raise a TypeError."""


_SHOWN = 80
"""The maximum number of characters of an expression that are shown."""


@dataclass(frozen=True)
class Fault:
    """A change of one expression or statement."""

    path: str
    """The path of the file, relative to the root of the repository."""
    line: int
    function: str
    """The qualified name of the function; "" outside functions."""
    start: int
    """The start of the changed text, as a byte offset in the file."""
    end: int
    before: str
    after: str
    draw: str
    """The hash that decides whether the fault is drawn; only the function's code changes it."""

    def __str__(self) -> str:
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.path}:{self.line}  {_shown(before, after)}  ->  {_shown(after, before)}"

    def applied(self, source: bytes) -> bytes:
        """Return the source of the file with the fault in it."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def faults_of(root: Path, path: Path) -> Iterator[Fault]:
    """Yield the faults that a file can have, in the order of their places."""
    source = path.read_bytes()
    name = path.relative_to(root).as_posix()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    seen: Counter[str] = Counter()
    for place in places_of(ast.parse(source)):
        node = place.node
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = source[start:end].decode()
        for after in _changes(place):
            key = f"{name}\0{place.function}\0{before}\0{after}"
            seen[key] += 1
            yield Fault(
                path=name,
                line=node.lineno,
                function=place.function,
                start=start,
                end=end,
                before=before,
                after=after,
                draw=hashlib.sha256(f"{key}\0{seen[key]}".encode()).hexdigest(),
            )


def _shown(text: str, other: str) -> str:
    """Return the part of a text around the first difference from another text."""
    pairs = enumerate(zip(text, other, strict=False))
    first = next((number for number, (one, two) in pairs if one != two), 0)
    start = max(0, first - _SHOWN // 2)
    return ("…" if start else "") + text[start:][:_SHOWN] + ("…" if text[start:][_SHOWN:] else "")


def _changes(place: Place) -> Iterator[str]:
    """Yield the texts that may replace a node."""
    for kind, change in _CHANGES:
        if isinstance(place.node, kind):
            for changed in change(place.node, place.parent):
                text = ast.unparse(changed)
                if text == ast.unparse(place.node):
                    continue
                yield text if isinstance(changed, ast.stmt) else f"({text})"


def _compare(node: ast.Compare, _: ast.AST) -> Iterator[ast.AST]:
    for number, operator in enumerate(node.ops):
        changed = copy.deepcopy(node)
        changed.ops[number] = _COMPARISONS[type(operator)]()
        yield changed


def _and_or(node: ast.BoolOp, _: ast.AST) -> Iterator[ast.AST]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield ast.BoolOp(other, node.values)


def _not(node: ast.UnaryOp, _: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.Not | ast.USub) and not isinstance(node.operand, ast.Constant):
        yield node.operand


def _arithmetic(node: ast.BinOp, _: ast.AST) -> Iterator[ast.AST]:
    sides = (node.left, node.right)
    if any(isinstance(side, _TEXTS) or _is_text(side) for side in sides):
        return
    if (other := _OPERATORS.get(type(node.op))) is not None:
        yield ast.BinOp(node.left, other(), node.right)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _constant(node: ast.Constant, parent: ast.AST) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
    elif isinstance(value, float):
        yield ast.Constant(value * 1.25 if value else 0.25)
    elif isinstance(value, str) and value and isinstance(parent, ast.Compare | ast.Subscript):
        yield ast.Constant(value + "_")


def _condition(node: ast.expr, parent: ast.AST) -> Iterator[ast.AST]:
    """Yield the negation of a condition that is a name or a call."""
    if isinstance(parent, ast.If | ast.IfExp | ast.While) and parent.test is node:
        yield ast.UnaryOp(ast.Not(), node)


def _return(node: ast.Return, _: ast.AST) -> Iterator[ast.AST]:
    value = node.value
    # Faults of constants change True and False.
    if value is None or (
        isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool))
    ):
        return
    if isinstance(value, ast.Compare | ast.BoolOp):
        yield ast.Return(ast.UnaryOp(ast.Not(), value))
    else:
        yield ast.Return(ast.Constant(None))


def _call(node: ast.Call, _: ast.AST) -> Iterator[ast.AST]:
    """Yield a call minus one named argument, or with the first two swapped if they are names."""
    for number, argument in enumerate(node.keywords):
        if argument.arg is not None and argument.arg not in WORDS | GUARDS:
            yield ast.Call(
                node.func, node.args, node.keywords[:number] + node.keywords[number + 1 :]
            )
    first = node.args[:2]
    if len(first) == 2 and all(
        isinstance(argument, ast.Name | ast.Attribute) for argument in first
    ):
        yield ast.Call(node.func, [*reversed(first), *node.args[2:]], node.keywords)


def _statement(node: ast.Expr, _: ast.AST) -> Iterator[ast.AST]:
    """Yield `pass` instead of a call that is made for its effect."""
    if isinstance(node.value, ast.Call):
        yield ast.Pass()


def _leave(node: ast.stmt, _: ast.AST) -> Iterator[ast.AST]:
    yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()


_Change = Callable[..., Iterator[ast.AST]]
_CHANGES: tuple[tuple[type[ast.AST] | tuple[type[ast.AST], ...], _Change], ...] = (
    (ast.Compare, _compare),
    (ast.BoolOp, _and_or),
    (ast.UnaryOp, _not),
    (ast.BinOp, _arithmetic),
    (ast.Constant, _constant),
    ((ast.Name, ast.Attribute, ast.Call), _condition),
    (ast.Return, _return),
    (ast.Call, _call),
    (ast.Expr, _statement),
    ((ast.Break, ast.Continue), _leave),
)
