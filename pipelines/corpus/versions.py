"""The versions that affect the bytes of segments."""

import unicodedata
from collections.abc import Mapping
from importlib.metadata import version

from pipelines.corpus.code import code_hash
from pipelines.corpus.sources import Corpus

STAGES_VERSION = 7
"""The version of the stages; it is raised by every change of this package that affects segments."""


def segment_versions(
    library_versions: Mapping[str, str], corpora: Mapping[str, Corpus]
) -> dict[str, str]:
    """Return the versions that affect the bytes of segments, by name.

    Args:
        library_versions: The versions of the libraries that the steps use.
        corpora: The corpus of each source.
    """
    modules = sorted({corpus.module for corpus in corpora.values()})
    return {
        "corpusmill stages": str(STAGES_VERSION),
        "ftfy": version("ftfy"),
        "unicode": unicodedata.unidata_version,
        **{f"code of {module}": code for module in modules if (code := code_hash(module))},
        **library_versions,
    }
