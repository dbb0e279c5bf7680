"""Custom corpora that fail, missing libraries, and datasets that another process writes."""

import fcntl
import os
from pathlib import Path

from tests.refusals.refusal import after_reading, at_start, in_python, refused
from tests.refusals.setups import (
    TOKENIZER,
    Setup,
    after_command,
    all_of,
    dataset,
    with_file,
)
from tests.refusals.setups_shards import edited, missing

OWN = """
from pipelines.corpus import BrokenRecord, Document, InputFormat, Options, CorpusSpec, Rejected
from pipelines.corpus import option, required_text, text_columns


def pages(stream):
    for block in stream.read().split(b"%%"):
        if block == b"?":
            yield BrokenRecord("bad-archive", block)
        elif block == b"!":
            raise KeyError("exclamation")
        else:
            yield {"body": block.decode(), "raw": block}


def documents(record, options):
    return (Document(required_text(record, "body"), {"kind": "note"}),)


def nothing(record, options):
    return ()


def fails(record, options):
    return 1 / 0


def returns(value):
    def documents(record, options):
        return value

    return documents


def rejects(record, options):
    raise Rejected("no-good")


def spec(**changes):
    return CorpusSpec(**{
        "name": "notes", "about": "Notes.", "pattern": ("*.pages",), "options": Options,
        "input_format": InputFormat(read=pages), "provenance": text_columns("kind"),
        "documents": documents, **changes})


CORPUS = CORPUS_HERE
"""


def own(spec: str, pages: bytes = b"one note%%another note") -> Setup:
    """Return a setup that writes an input, and a corpus module whose CORPUS is an expression."""
    module = OWN.replace("CORPUS_HERE", spec)
    return all_of(with_file("notes.py", module), with_file("in/a.pages", pages))


RUN = f"pipelines.text --input n=notes:in {TOKENIZER} --output out --languages all"

CORPORA = {
    "a CorpusSpec with an unknown field": own("CorpusSpec(nam='notes')"),
    "columns that are no mapping": own("spec(provenance=3)"),
    "reader and format": own("spec(input_format=InputFormat(read=pages, format='json'))"),
    "an unknown format": own("spec(input_format=InputFormat(format='csv', text_fields=('a',)))"),
    "records of no byte": own(
        "spec(input_format=InputFormat(text_fields=('a',), max_record_bytes=0))"
    ),
    "package is missing": all_of(
        with_file("notes.py", "import torchr\n"), with_file("in/a.pages", "x")
    ),
}
MAKING = {
    "an input format that is none": own("spec(input_format=3)"),
}
READING = {
    "reader fails": own("spec()", b"one%%!"),
    "documents are none": own("spec(documents=nothing)"),
    "documents fail": own("spec(documents=fails)"),
    "a text is half a character": own("spec(documents=returns((Document('\\ud800'),)))"),
    "documents are rejected": own("spec(documents=rejects)"),
    "records are broken": own("spec()", b"?%%?"),
}


def without(module: str) -> Setup:
    """Return a setup that writes a module of this name that cannot be imported."""
    return with_file(f"{module}.py", "raise ImportError('it is broken')\n")


LIBRARIES = {
    "s3fs": (f"pipelines.text {TOKENIZER} --output out --input s3://bucket/in", without("s3fs")),
    "huggingface_hub": (
        f"pipelines.text {TOKENIZER} --output out --input hf:o/n",
        without("huggingface_hub"),
    ),
}


def with_a_line(module: str) -> Setup:
    """Return a setup that adds a line to a module."""
    return edited(module, lambda content: content + b"# edited\n")


MADE = RUN.replace("--output out", "--output data")
own_dataset = after_command(MADE, own("spec()"))


def being_written(folder: Path) -> None:
    """Lock the dataset as if another process were writing it."""
    (folder / "data").mkdir(exist_ok=True)
    held = os.open(folder / "data" / ".lock", os.O_RDWR | os.O_CREAT)  # until this process ends
    fcntl.flock(held, fcntl.LOCK_EX)
    os.ftruncate(held, 0)
    os.write(held, b"process 7 on host far")


DATA = f"pipelines.wudao --input in {TOKENIZER} --output data"

TWICE = f"""
import pipelines
def build():
    pipelines.build(
        "notes", input="in", output="out", languages="all", language_threshold=0,
        tokenizer={TOKENIZER.split()[1]!r},
    )
build()
with open("notes.py", "a") as module:
    module.write("# edited")
build()
"""

ROWS = (
    *(refused(f"own corpus: {x}", RUN, setup=setup) for x, setup in CORPORA.items()),
    *(at_start(f"own corpus: {x}", RUN, setup=setup) for x, setup in MAKING.items()),
    *(after_reading(f"own corpus: {x}", RUN, setup=setup) for x, setup in READING.items()),
    *(
        refused(f"without {x}", command, setup=setup, new_process=True)
        for x, (command, setup) in LIBRARIES.items()
    ),
    refused("own corpus: edited since", MADE, setup=all_of(own_dataset, with_a_line("notes.py"))),
    refused("own corpus: gone since", MADE, setup=all_of(own_dataset, missing("notes.py"))),
    refused("being written: append", f"{DATA} --append", setup=all_of(dataset, being_written)),
    at_start(
        "without kenlm",
        "pipelines.wudao --output out --perplexity 'zh=k+p<=9'",
        setup=all_of(without("kenlm"), with_file("k"), with_file("p")),
        new_process=True,
    ),
    refused("without numba", "pipelines.steps.compile", setup=without("numba"), new_process=True),
    in_python(
        "build of a corpus that is edited meanwhile",
        TWICE,
        setup=own("spec()"),
        may_write=("*",),
        output_before="merge 100 %",
    ),
)
