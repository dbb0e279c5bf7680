"""Runs datatrove's filters and pipelines in an interpreter that has datatrove.

    python tests/bench/datatrove_steps.py minhash FOLDER OUTPUT
    python tests/bench/datatrove_steps.py RECIPE INPUT.jsonl.zst OUTPUT TOKENIZER.json LID_MODEL

minhash removes near-duplicates of JSON lines and writes them to OUTPUT/removed. RECIPE names a
pipeline from JSON lines to tokens: bare, fineweb (FineWeb's four filters, and near-duplicate
signatures) or fineweb2 (FineWeb-2's filters for Mandarin).

Sources: datatrove, examples/fineweb.py (05194d3); FineWeb-2, configs/cmn_Hani.yml (05e6729) and
fineweb-2-pipeline.py (7ee60b3).
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    LanguageFilter,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils import lid
from datatrove.utils.hashing import HashConfig

MINHASH = MinhashConfig(hash_config=HashConfig(hash_fc="sha1"))
"""FineWeb's 14 buckets of 8 hashes of 5-grams; datatrove's default hash fails with new versions of
xxhash."""


def filters(recipe: str) -> Sequence[Any]:
    """Return the filters of the recipe bare, fineweb or fineweb2."""
    return {"bare": (), "fineweb": _fineweb(), "fineweb2": _fineweb2()}[recipe]


def _fineweb() -> Sequence[Any]:
    return (
        GopherRepetitionFilter(),
        GopherQualityFilter(),
        C4QualityFilter(filter_no_terminal_punct=False),
        FineWebQualityFilter(),
    )


def _fineweb2(language: str = "cmn_Hani") -> Sequence[Any]:
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
            stop_words=[*"的年在月是和日了於·為有被人中為他與後也而由"],
        ),
    )


class Signatures(MinhashDedupSignature):
    """Computes the signature of every document, but does not write it."""

    def run(self, data: Any, *_: Any, **__: Any) -> Iterator[Any]:
        """Yield the documents unchanged."""
        for document in data:
            shingles = self.get_shingles(document.text)
            if shingles.size:
                self.get_signature(shingles)
            yield document


def run_recipe(recipe: str, source: Path, output: str, tokenizer: str, model: str) -> None:
    """Run a recipe: read, identify the language, filter and tokenize."""
    # Makes both pipelines use the same model; datatrove would download lid.176.bin.
    lid.cached_asset_path_or_download = lambda *_, **__: model
    signed = [Signatures(f"{output}/signatures", MINHASH)] if recipe == "fineweb" else []
    reader = JsonlReader(
        str(source.parent), glob_pattern=source.name, compression="zstd", text_key="text"
    )
    tokens = DocumentTokenizer(
        output_folder=f"{output}/tokens",
        tokenizer_name_or_path=tokenizer,
        shuffle_documents=True,
        seed=0,
    )
    language = LanguageFilter(languages=["zh", "en"], language_threshold=0.5)
    _execute(output, "recipe", [reader, language, *filters(recipe), *signed, tokens])


def remove_duplicates(folder: str, output: str) -> None:
    """Run datatrove's four steps of MinHash."""
    reader = JsonlReader(folder)
    removed = JsonlWriter(f"{output}/removed", compression=None)
    signed, bucketed, drops = (f"{output}/{name}" for name in ("signatures", "buckets", "drops"))
    _execute(output, "signatures", [reader, MinhashDedupSignature(signed, MINHASH)])
    buckets = MinhashDedupBuckets(signed, bucketed, config=MINHASH)
    _execute(output, "buckets", [buckets], tasks=MINHASH.num_buckets)
    _execute(output, "clusters", [MinhashDedupCluster(bucketed, drops, MINHASH)])
    _execute(output, "filter", [reader, MinhashDedupFilter(drops, exclusion_writer=removed)])


def _execute(output: str, name: str, pipeline: Sequence[Any], *, tasks: int = 1) -> None:
    logs = f"{output}/logs-{name}"
    LocalPipelineExecutor(pipeline=[*pipeline], tasks=tasks, logging_dir=logs).run()


if __name__ == "__main__":
    what, source, output, *more = sys.argv[1:]
    if what == "minhash":
        remove_duplicates(source, output)
    else:
        run_recipe(what, Path(source), output, *more)
