"""The names that a corpus module needs to describe a corpus and its run."""

from shards.commands.extras import missing_extras_explained

with missing_extras_explained():
    from pipelines.corpus.document import Document as Document
    from pipelines.corpus.document import Rejected as Rejected
    from pipelines.corpus.fields import optional_text as optional_text
    from pipelines.corpus.fields import required_text as required_text
    from pipelines.corpus.options import SEGMENTS as SEGMENTS
    from pipelines.corpus.options import Options as Options
    from pipelines.corpus.options import option as option
    from pipelines.corpus.spec import CorpusSpec as CorpusSpec
    from pipelines.corpus.spec import text_columns as text_columns
    from pipelines.read.input_format import InputFormat as InputFormat
    from pipelines.read.record import BrokenRecord as BrokenRecord
    from pipelines.read.value import as_text as as_text
    from shards.commands.flags import count as count
    from shards.commands.flags import fraction as fraction
    from shards.commands.flags import names as names
    from shards.commands.flags import positive as positive
