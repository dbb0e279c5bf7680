"""A pipeline of transforms as a script of its own: CORPUS OUTPUT, then Beam's flags."""

import sys
from collections.abc import Sequence

from pipelines.corpus.recipe import SAMPLE
from pipelines.execute import beam
from pipelines.execute.runner import ready_for_engine
from pipelines.transforms import (
    Clean,
    FromRows,
    IdentifyLanguage,
    ReadCorpus,
    Steps,
    ToRows,
    WriteDataset,
)

TOKENIZER = f"sentencepiece:{SAMPLE / 'sample.model'}"


def main(corpus: str, output: str, flags: Sequence[str]) -> None:
    """Run it; its documents cross a shuffle as rows, so that bundles are the engine's."""
    pipeline = beam.Pipeline(options=beam.PipelineOptions(ready_for_engine(flags)))
    read = pipeline | ReadCorpus("wudao", input=corpus, split_bytes=8000)
    steps = read.kept | Steps(Clean(), IdentifyLanguage("zh", "en"))
    rows = steps.kept | ToRows("id", "category", "repaired", "language", "score")
    mixed = rows | "Mix" >> beam.Reshuffle() | FromRows()
    sink = WriteDataset(output, tokenizer=TOKENIZER, shards=4, dropped=[read, steps])
    _ = mixed | sink
    pipeline.run().wait_until_finish()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
