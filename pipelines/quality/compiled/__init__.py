"""The measures of profiles as native loops, equal to the plain ones number by number.

Importing this package imports numba: see pipelines/compiled.py.
"""

from collections.abc import Mapping
from types import MappingProxyType

from pipelines.quality.profile import Measure

MEASURES: Mapping[str, Measure] = MappingProxyType({})
"""By the name of a profile, what takes the place of its `measure`."""
