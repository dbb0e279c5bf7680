"""What measures texts beside the profiles, a batch at a time: a model of one's own or of others."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pipelines.quality.profile import Rule


class Scorer(Protocol):
    """Metrics of texts by a model, and bounds on them."""

    columns: tuple[str, ...]
    """Names of its metric columns, float32."""
    reasons: tuple[str, ...]
    """Every reason that it may give."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What decides its figures and verdicts, JSON-able: fingerprints instead of paths."""
        ...

    @property
    def engines(self) -> Mapping[str, str]:
        """The libraries that decide its figures, with their versions."""
        ...

    def rules(self, language: str) -> tuple[Rule, ...]:
        """Return the rules for texts of a language, in order of application."""
        ...

    def score(
        self, texts: Sequence[str], languages: Sequence[str]
    ) -> Mapping[str, npt.NDArray[np.float32]]:
        """Return float32[n] by column; NaN for texts that it has nothing to say of."""
        ...
