"""What calls from Python refuse, besides what golden rows show (`called`, `transforms`)."""

from tests.refusals.refusal import raised
from tests.refusals.scenes import LINES, MODEL, dataset, holding, lines, together

BUILD = {
    "filter='__main__:no_ads'": (
        "UserError: a corpus or filter of your own cannot be in the script or notebook that is"
        " running (__main__): worker processes import it by name. Put it into a file of its own"
        " beside it, such as notes.py, and name that module"
    ),
    "filter=lambda batch: None": (
        "UserError: filter: <lambda> has no name in the module row by which worker processes could"
        " find it: define it with def or class, at the top of a module"
    ),
    "parallelism='many'": (
        "UserError: --parallelism: 'many' is not a whole number. beam --help lists every flag"
    ),
    "keep_dropped='yes'": (
        "UserError: keep_dropped='yes' is neither True nor False: give one of the two"
    ),
    "seed=[1, 2]": "UserError: seed takes one value, not several: [1, 2]",
    "seed={1}": (
        "UserError: seed is given a set, {1}: it takes text, a number or a path, or what --help"
        " says of its flag as text"
    ),
    "languages=['zh,en', 'ja']": (
        "UserError: languages: 'zh,en' holds a comma, at which --languages parts its values: give"
        " each of them as one of the list"
    ),
    "tokenizer=object": (
        'UserError: --tokenizer "builtins:object": write sentencepiece:PATH, tiktoken:NAME or'
        " tiktoken:PATH, hf:PATH or hf:OWNER/NAME. No tokenizer yet? python -m"
        " pipelines.train_tokenizer --help shows how to train one."
    ),
}
"""Keywords of pipelines.build for wudao."""

T = f"sentencepiece:{MODEL}"
MAKING = {
    "ReadCorpus('wudao', titel='never')": (
        "UserError: ReadCorpus('wudao') has no option 'titel': did you mean title? Give one of"
        " input, min_chars, sample, seed, skip_unreadable, split_bytes, title, title_separator."
        " What else the command takes belongs to the other transforms"
    ),
    "ReadCorpus('text', input='in', provenance='source')": (
        "UserError: the corpus of the input 'text' has a column 'source', a name that transforms"
        " use for their own: call it otherwise in its `provenance`"
    ),
    "JudgeQuality('none', classifier=['a.bin:hq>=0.5'])": (
        "UserError: a.bin: No such file or directory; expected a classifier that fastText's"
        " supervised training wrote (.bin or .ftz)."
    ),
    "OwnFilter('rules:tokenize')": (
        "UserError: a filter cannot be called 'tokenize': a step, rule or model of corpusmill is"
        " called so, and figures and reasons go by these names"
    ),
    "OwnFilter('clean=rules:one')": (
        'UserError: OwnFilter("clean=rules:one"): its place is where it is put, so leave clean= out'
    ),
    "Steps(MaskPersonalData(), Clean(), MaskPersonalData())": (
        "UserError: Steps(…): MaskPersonalData adds the column 'pii.email', as MaskPersonalData"
        " before it does: give each transform once"
    ),
    f"WriteDataset('out', tokenizer={T!r}, dedub='exact')": (
        "UserError: WriteDataset has no option 'dedub': did you mean dedup? Give one of dedup,"
        " minhash_threshold, clusters, validation, shards, shard_tokens, keep_dropped,"
        " max_reject_rate, keep_segments, overwrite, workers. What says how texts are read or"
        " judged belongs to the other transforms"
    ),
}
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
COMPOSING = {
    "read.kept | beam.WindowInto(FixedWindows(9)) | write(commit=False)": (
        "UserError: WriteDataset was given a collection in windows with commit=False: each window"
        " adds a generation as it closes.…"
    ),
    "read.kept | beam.WindowInto(FixedWindows(9)) | write('data')": (
        "UserError: …/data holds a dataset of pipelines.wudao, not of pipelines.pipeline. Give the"
        " options that it was made with, or another output"
    ),
    "of(text='a', at=[1]) | FromRows()": (
        "UserError: FromRows: the field 'at' is of List[<class 'int'>]; a column is of str, int,"
        " float or bool. Leave it out, or make a text of it"
    ),
}
"""Pipelines that cannot be composed."""

ROWS = (
    *(
        raised(f"build({x})", f"import pipelines\npipelines.build('wudao', {x})", says, scene=lines)
        for x, says in BUILD.items()
    ),
    *(
        raised(
            x.replace(T, "T"),
            f"from pipelines.transforms import *\n{x}",
            says,
            scene=together(
                dataset,
                holding("in/a.jsonl", LINES),
                holding("rules.py", "def tokenize(batch): pass\none = tokenize\n"),
            ),
        )
        for x, says in MAKING.items()
    ),
    *(raised(x, f"{PIPE}{x}", says, scene=dataset) for x, says in COMPOSING.items()),
    raised(
        "pipelines.bild",
        "import pipelines\npipelines.bild",
        "AttributeError: module 'pipelines' has no attribute 'bild'",
        code=1,
    ),
)
