"""The custom filters of a run: which, where in the chain, with which options.

    my_rules:no_ads                        after the quality rules
    clean=my_rules:no_ads                  after texts are cleaned
    my_rules:Toxicity?model=/m.bin&max_score=0.3
    toxicity                               one that an installed package offers

A filter is a function of a batch, or a class that is made once in each process with the options as
keywords; see docs/own.md.
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
"""After which step a custom filter may stand, as the report calls them."""

FILTER = "filter"
"""Its name in errors."""

GROUP = "corpusmill.filters"
"""The entry points by which an installed package offers filters."""

_SPEC = re.compile(
    r"(?:(?P<after>[a-z]+)=)?(?P<filter>[^\W\d][\w.-]*(?::\w+)?)(?:\?(?P<given>.*))?"
)
_ADVICE = "Write [AFTER=]MODULE:NAME[?OPTION=VALUE&…], as in quality=my_rules:no_ads"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSpec:
    """A requested filter."""

    after: str
    """The step that it follows, of PLACES."""
    module: str
    name: str
    """Of the function or class in the module, and of its reasons in the report."""
    given: Mapping[str, str]
    """Its options."""

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"

    def load(self) -> tuple[Callable[..., Any], dict[str, float]]:
        """Return the function, or the object of the class, and its bounds.

        Options of the names of its bounds set those; the others go to the constructor.

        Raises:
            UserError: There is no such module or name in it, it takes no such option, or its code
                fails.
        """
        found = load_user_code(str(self), what=FILTER)
        bounds = self._own_bounds(getattr(found, "bounds", {}))
        given = {name: value for name, value in self.given.items() if name not in bounds}
        for name, text in self.given.items():
            if name in bounds:
                bounds[name] = parse_bound(f"--filter {self}?{name}={text}", text)
        if not inspect.isclass(found):
            if given:
                raise UserError(
                    f"--filter {self} is given options ({', '.join(given)}), but it is a "
                    "function: make it a class, whose constructor takes them"
                )
            return self._callable(found), bounds
        try:
            inspect.signature(found).bind(**given)
        except TypeError as error:
            raise UserError(
                f"--filter {self}: {error}; it takes {inspect.signature(found)}"
            ) from error
        with reraise_user_code_errors(str(self), doing="it cannot be made", what=FILTER):
            return self._callable(found(**given)), bounds

    def _own_bounds(self, bounds: Any) -> dict[str, float]:
        """Return the bounds that the code itself has."""
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
            raise UserError(f"--filter {self} is no filter: it cannot be called with a batch")
        function: Callable[..., Any] = found
        return function


def parse_filter(text: str) -> FilterSpec:
    """Return the filter that a flag asks for.

    Raises:
        UserError: It is not written as one, or no installed package offers a filter of that name.
    """
    matched = _SPEC.fullmatch(text)
    if matched is None:
        raise UserError(f'--filter "{text}" names no filter. {_ADVICE}')
    after = matched["after"] or QUALITY
    if after not in PLACES:
        raise UserError(
            f'--filter "{text}": no step {after!r} for a filter to follow: '
            f"{expected(after, PLACES)}"
        )
    module, colon, name = matched["filter"].partition(":")
    if not colon:
        module, name = _offered(module)
    given = (matched["given"] or "").replace("+", "%2B")  # no space, as it would be in a form
    pairs = urllib.parse.parse_qsl(given, keep_blank_values=True)
    if len(dict(pairs)) < len(pairs):
        raise UserError(f'--filter "{text}" gives an option twice')
    return FilterSpec(after=after, module=module, name=name, given=dict(pairs))


def _offered(name: str) -> tuple[str, str]:
    """Return module and name of a filter that an installed package offers."""
    offered = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in offered:
        there = f"there are {', '.join(sorted(offered))}" if offered else "none is installed"
        raise UserError(
            f"--filter {name}: no installed package offers a filter of that name ({there}). "
            f"{_ADVICE}"
        )
    module, _, attribute = offered[name].value.partition(":")
    return module, attribute
