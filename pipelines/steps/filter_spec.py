"""Parses the custom filters of a run: their code, place among the steps, and options.

    my_rules:no_ads                        after the quality rules
    clean=my_rules:no_ads                  after texts are cleaned
    my_rules:Toxicity?model=/m.bin&max_score=0.3
    toxicity                               a filter of an installed package

A filter is a function of a batch, or a class that each process instantiates once, with the options
as keywords; see docs/own.md.
"""

import inspect
import math
import re
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from numbers import Real
from typing import Any

from pipelines.corpus.failure import reraise_user_code_errors
from pipelines.corpus.user_code import load_user_code
from pipelines.quality.selection import parse_bound
from shards.commands.spelling import expected
from shards.errors import UserError

READ, CLEAN, LANGUAGE, QUALITY = "read", "clean", "langid", "quality"
CONTAMINATION, MASK = "decontaminate", "mask"
PLACES = (READ, CLEAN, LANGUAGE, QUALITY, CONTAMINATION, MASK)
"""The steps that a custom filter may follow, by their names in the report."""

FILTER = "filter"
"""The word for a custom filter in errors."""

GROUP = "corpusmill.filters"
"""The group of the entry points with which installed packages offer filters."""

_SPEC = re.compile(
    r"(?:(?P<after>[a-z]+)=)?(?P<filter>[^\W\d][\w.-]*(?::\w+)?)(?:\?(?P<options>.*))?"
)
_ADVICE = "Write [AFTER=]MODULE:NAME[?OPTION=VALUE&…], as in quality=my_rules:no_ads"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSpec:
    """A requested custom filter."""

    after: str
    """The step of PLACES that the filter follows."""
    module: str
    name: str
    """The name of the function or class in the module; the filter's reasons begin with it."""
    options: Mapping[str, str]
    """The options of the filter."""

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"

    def load(self) -> tuple[Callable[..., Any], dict[str, float]]:
        """Return the function, or an instance of the class, and the bounds.

        Options with the name of a bound set the bound; the constructor gets all other options.

        Raises:
            UserError: The module or the name does not exist, the filter does not have such an
                option, or its code fails.
        """
        found = load_user_code(str(self), what=FILTER)
        bounds = self._declared_bounds(getattr(found, "bounds", {}))
        arguments = {name: text for name, text in self.options.items() if name not in bounds}
        for name, text in self.options.items():
            if name in bounds:
                bounds[name] = parse_bound(f"--filter {self}?{name}={text}", text)
        if not inspect.isclass(found):
            if arguments:
                raise UserError(
                    f"--filter {self} has options ({', '.join(arguments)}), but it is a function: "
                    "make it a class whose constructor takes them"
                )
            return self._callable(found), bounds
        try:
            inspect.signature(found).bind(**arguments)
        except TypeError as error:
            raise UserError(
                f"--filter {self}: {error}; it takes {inspect.signature(found)}"
            ) from error
        with reraise_user_code_errors(str(self), doing="it cannot be instantiated", what=FILTER):
            return self._callable(found(**arguments)), bounds

    def _declared_bounds(self, bounds: Any) -> dict[str, float]:
        """Return the bounds that the filter's code declares."""
        if not isinstance(bounds, Mapping):
            raise UserError(
                f"--filter {self}: its `bounds` is {bounds!r}, not a dict such as "
                '{"min_score": 0.5}'
            )
        for name, bound in bounds.items():
            if not isinstance(bound, Real) or math.isinf(bound):
                raise UserError(
                    f"--filter {self}: its `bounds` has {bound!r} for {name!r}: give a finite "
                    "number, or nan for a bound that is off"
                )
        return {name: float(bound) for name, bound in bounds.items()}

    def _callable(self, found: Any) -> Callable[..., Any]:
        if not callable(found):
            raise UserError(f"--filter {self} is not a filter: it cannot be called with a batch")
        function: Callable[..., Any] = found
        return function


def parse_filter(text: str) -> FilterSpec:
    """Return the filter that a --filter flag describes.

    Raises:
        UserError: The syntax is wrong, or no installed package offers a filter of that name.
    """
    matched = _SPEC.fullmatch(text)
    if matched is None:
        raise UserError(f'--filter "{text}" does not name a filter. {_ADVICE}')
    after = matched["after"] or QUALITY
    if after not in PLACES:
        raise UserError(
            f'--filter "{text}": a filter cannot follow the step {after!r}: '
            f"{expected(after, PLACES)}"
        )
    module, colon, name = matched["filter"].partition(":")
    if not colon:
        module, name = _installed(module)
    query = (matched["options"] or "").replace("+", "%2B")  # a plus sign, not a space
    pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
    if len(dict(pairs)) < len(pairs):
        raise UserError(f'--filter "{text}" gives an option twice')
    return FilterSpec(after=after, module=module, name=name, options=dict(pairs))


def _installed(name: str) -> tuple[str, str]:
    """Return the module and name of the filter that an installed package offers under a name."""
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in entries:
        known = f"there are {', '.join(sorted(entries))}" if entries else "none is installed"
        raise UserError(
            f"--filter {name}: no installed package offers a filter of that name ({known}). "
            f"{_ADVICE}"
        )
    module, _, attribute = entries[name].value.partition(":")
    return module, attribute
