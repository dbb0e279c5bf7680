"""What calls from Python refuse, besides what golden rows show (`called`, `transforms`)."""

from tests.refusals.refusal import raised
from tests.refusals.scenes import LINES, MODEL, dataset, holding, lines, together

BUILD = (
    "filter='__main__:no_ads'",
    "filter=lambda batch: None",
    "parallelism='many'",
    "keep_dropped='yes'",
    "seed=[1, 2]",
    "seed={1}",
    "languages=['zh,en', 'ja']",
    "tokenizer=object",
)
"""Keywords of pipelines.build for wudao."""

T = f"sentencepiece:{MODEL}"
MAKING = (
    "ReadCorpus('wudao', titel='never')",
    "ReadCorpus('text', input='in', provenance='source')",
    "JudgeQuality('none', classifier=['a.bin:hq>=0.5'])",
    "OwnFilter('rules:tokenize')",
    "OwnFilter('clean=rules:one')",
    "Steps(MaskPersonalData(), Clean(), MaskPersonalData())",
    f"WriteDataset('out', tokenizer={T!r}, dedub='exact')",
)
"""Transforms that cannot be made."""

PIPE = """
import apache_beam as beam
from apache_beam.transforms.window import FixedWindows
from pipelines.transforms import *
pipeline = beam.Pipeline("FnApiRunner")
read = pipeline | ReadCorpus("wudao")
def of(**fields):
    return pipeline | "Of" >> beam.Create([beam.Row(**fields)])
def write(output="out", **options):
    return WriteDataset(output, tokenizer=TOKENIZER, **options)
""".replace("TOKENIZER", repr(T))
COMPOSING = (
    "read.kept | beam.WindowInto(FixedWindows(9)) | write(commit=False)",
    "read.kept | beam.WindowInto(FixedWindows(9)) | write('data')",
    "of(text='a', at=[1]) | FromRows()",
)
"""Pipelines that cannot be composed."""

ROWS = (
    *(
        raised(f"build({x})", f"import pipelines\npipelines.build('wudao', {x})", scene=lines)
        for x in BUILD
    ),
    *(
        raised(
            x.replace(T, "T"),
            f"from pipelines.transforms import *\n{x}",
            scene=together(
                dataset,
                holding("in/a.jsonl", LINES),
                holding("rules.py", "def tokenize(batch): pass\none = tokenize\n"),
            ),
        )
        for x in MAKING
    ),
    *(raised(x, f"{PIPE}{x}", scene=dataset) for x in COMPOSING),
    raised("pipelines.bild", "import pipelines\npipelines.bild", code=1),
)
