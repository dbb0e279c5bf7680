"""The parts of the pipelines as Beam transforms, for pipelines of one's own (docs/transforms.md).

Elements are pyarrow RecordBatches, a row for each document; FromRows and ToRows make rows of Beam
of them.
"""

from shards.extras import extras_named

with extras_named():
    from pipelines.transforms.coder import RecordBatchCoder as RecordBatchCoder
    from pipelines.transforms.judged import CorpusOutputs as CorpusOutputs
    from pipelines.transforms.judged import Judged as Judged
    from pipelines.transforms.read import ReadCorpus as ReadCorpus
    from pipelines.transforms.rows import FromRows as FromRows
    from pipelines.transforms.rows import ToRows as ToRows
    from pipelines.transforms.steps import Clean as Clean
    from pipelines.transforms.steps import Decontaminate as Decontaminate
    from pipelines.transforms.steps import DropAddresses as DropAddresses
    from pipelines.transforms.steps import IdentifyLanguage as IdentifyLanguage
    from pipelines.transforms.steps import JudgeQuality as JudgeQuality
    from pipelines.transforms.steps import MaskPersonalData as MaskPersonalData
    from pipelines.transforms.steps import OwnFilter as OwnFilter
    from pipelines.transforms.steps import Steps as Steps
    from pipelines.transforms.steps import Tokenize as Tokenize
    from pipelines.transforms.write import WriteDataset as WriteDataset
