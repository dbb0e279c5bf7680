"""datatrove's own filters, as FineWeb and FineWeb-2 set them, for any interpreter that has it.

Sources: datatrove, examples/fineweb.py (05194d3); FineWeb-2, configs/cmn_Hani.yml (05e6729) and
fineweb-2-pipeline.py (7ee60b3).
"""

from collections.abc import Sequence
from typing import Any

from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)

STOP_WORDS = "的年在月是和日了於·為有被人中为他與後也而由"


def fineweb() -> Sequence[Any]:
    """Return the four filters of FineWeb."""
    return (
        GopherRepetitionFilter(),
        GopherQualityFilter(),
        C4QualityFilter(filter_no_terminal_punct=False),
        FineWebQualityFilter(),
    )


def fineweb2_chinese(language: str = "cmn_Hani") -> Sequence[Any]:
    """Return the three filters of FineWeb-2 for Mandarin."""
    return (
        GopherRepetitionFilter(
            language=language,
            dup_para_frac=0,
            dup_line_char_frac=0,
            dup_para_char_frac=0,
            dup_line_frac=0.287,
            top_n_grams=((2, 0.256), (3, 0.201), (4, 0.171)),
            dup_n_grams=((5, 0.198), (6, 0.182), (7, 0.167), (8, 0.154), (9, 0.14), (10, 0.127)),
        ),
        FineWebQualityFilter(
            language=language,
            short_line_thr=999,
            char_duplicates_ratio=0.1,
            line_punct_thr=0.106,
            new_line_ratio=0.178,
        ),
        GopherQualityFilter(
            language=language,
            min_avg_word_length=1,
            max_avg_word_length=5,
            max_non_alpha_words_ratio=0.735,
            stop_words=[*STOP_WORDS],
        ),
    )
