"""datatrove's pipeline from JSON lines to tokens, run by an interpreter that has datatrove.

python tests/bench/datatrove_run.py INPUT.jsonl.zst TOKENIZER.json LID_MODEL RECIPE OUTPUT

RECIPE is bare, fineweb (its four filters, and near-duplicate signatures) or fineweb2 (its filters
for Mandarin).
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datatrove_filters
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.filters import LanguageFilter
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.utils import lid
from datatrove.utils.hashing import HashConfig


class Signatures(MinhashDedupSignature):
    """Signs every document and passes it on; the signatures are not written."""

    def run(self, data: Any, *_: Any, **__: Any) -> Iterator[Any]:
        """Yield the documents."""
        for document in data:
            shingles = self.get_shingles(document.text)
            if shingles.size:
                self.get_signature(shingles)
            yield document


def steps(recipe: str, output: str) -> list[Any]:
    """Return what stands between the language filter and the tokenizer."""
    if recipe == "fineweb":
        # Its usual hash fails with a recent xxhash.
        config = MinhashConfig(hash_config=HashConfig(hash_fc="sha1"))
        return [*datatrove_filters.fineweb(), Signatures(f"{output}/signatures", config)]
    return [*datatrove_filters.fineweb2_chinese()] if recipe == "fineweb2" else []


def main() -> None:
    source, tokenizer, model, recipe, output = sys.argv[1:]
    # It would download lid.176.bin; both pipelines are to use the model given.
    lid.cached_asset_path_or_download = lambda *_, **__: model
    LocalPipelineExecutor(
        pipeline=[
            JsonlReader(
                str(Path(source).parent),
                glob_pattern=Path(source).name,
                compression="zstd",
                text_key="text",
            ),
            LanguageFilter(languages=["zh", "en"], language_threshold=0.5),
            *steps(recipe, output),
            DocumentTokenizer(
                output_folder=f"{output}/tokens",
                tokenizer_name_or_path=tokenizer,
                shuffle_documents=True,
                seed=0,
            ),
        ],
        logging_dir=f"{output}/logs",
    ).run()


if __name__ == "__main__":
    main()
