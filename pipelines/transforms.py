"""The parts of the pipelines as Beam transforms, for custom pipelines (docs/own.md).

Elements are pyarrow RecordBatches with one row per document; FromRows and ToRows convert from and
to Beam rows.
"""

from shards.commands.extras import missing_extras_explained

with missing_extras_explained():
    from pipelines.corpus.rows import FromRows, ToRows
    from pipelines.execute.coder import RecordBatchCoder
    from pipelines.process.read_corpus import ReadCorpus
    from pipelines.steps.outputs import CorpusOutputs, FilterOutputs
    from pipelines.steps.transforms import (
        Clean,
        Decontaminate,
        FilterUrls,
        IdentifyLanguage,
        JudgeQuality,
        MaskPersonalData,
        Steps,
        Tokenize,
        UserFilter,
    )
    from pipelines.write.dataset import WriteDataset

__all__ = [
    "Clean",
    "CorpusOutputs",
    "Decontaminate",
    "FilterOutputs",
    "FilterUrls",
    "FromRows",
    "IdentifyLanguage",
    "JudgeQuality",
    "MaskPersonalData",
    "ReadCorpus",
    "RecordBatchCoder",
    "Steps",
    "ToRows",
    "Tokenize",
    "UserFilter",
    "WriteDataset",
]
