"""Finds the places in a file where a fault may be put: code that decides something.

Types, decorators, docstrings, error messages, help texts and guards against races are left out,
because a fault there changes no result, or the table of refusals contains the text.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

WORDS = {"help", "metavar", "about", "stacklevel", "encoding", "title"}
"""Named arguments that are texts for people, or that do not change results."""

GUARDS = {"strict", "exist_ok", "missing_ok", "repr"}
"""Named arguments that matter only in races, in debugging, or if lists are unequal by mistake."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Place:
    """A node that faults may change."""

    node: ast.expr | ast.stmt
    parent: ast.AST
    function: str
    """The qualified name of the function around the node; "" outside functions."""


def places_of(tree: ast.Module) -> Iterator[Place]:
    """Yield the places of a module, in the order of the source."""
    yield from _below(tree, tree, scope=(), function="")


def function_names(
    tree: ast.Module,
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the qualified name and the node of each function of a module."""
    pending: list[tuple[ast.AST, tuple[str, ...]]] = [(tree, ())]
    while pending:
        node, scope = pending.pop()
        for child in ast.iter_child_nodes(node):
            inner = (
                (*scope, child.name) if isinstance(child, (*_FUNCTIONS, ast.ClassDef)) else scope
            )
            if isinstance(child, _FUNCTIONS):
                yield ".".join(inner), child
            pending.append((child, inner))


def _below(
    node: ast.AST, parent: ast.AST, *, scope: tuple[str, ...], function: str
) -> Iterator[Place]:
    if isinstance(node, ast.expr | ast.stmt):
        yield Place(node, parent, function)
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        scope = (*scope, node.name)
        function = ".".join(scope) if isinstance(node, _FUNCTIONS) else function
    for child in _children(node):
        yield from _below(child, node, scope=scope, function=function)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the child nodes of a node, except those that are left out."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment", "format_spec"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_wordy(child):
                yield child


def _is_wordy(node: ast.AST) -> bool:
    """Return whether a node is a docstring, a text for people, or a log call."""
    if isinstance(node, ast.keyword):
        return node.arg in WORDS | GUARDS
    if isinstance(node, ast.Expr):
        called = node.value.func if isinstance(node.value, ast.Call) else None
        noted = ast.unparse(called).startswith("_LOG.") if called is not None else False
        return noted or isinstance(node.value, ast.Constant)
    return False
