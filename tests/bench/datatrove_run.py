"""datatrove's pipeline from JSON lines to tokens, run by an interpreter that has datatrove.

python tests/bench/datatrove_run.py INPUT.jsonl.zst TOKENIZER.json LID_MODEL LANGUAGE OUTPUT
"""

import sys
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.filters import LanguageFilter
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.utils import lid


def main() -> None:
    source, tokenizer, model, language, output = sys.argv[1:]
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
            DocumentTokenizer(
                output_folder=f"{output}/{language}",
                tokenizer_name_or_path=tokenizer,
                shuffle_documents=True,
                seed=0,
            ),
        ],
        logging_dir=f"{output}/logs-{language}",
    ).run()


if __name__ == "__main__":
    main()
