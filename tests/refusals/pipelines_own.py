"""Corpora of one's own that fail, libraries that are not there, and datasets in other hands."""

import fcntl
import os
from pathlib import Path

from tests.refusals.refusal import mapped, opened, refused
from tests.refusals.scenes import (
    TOKENIZER,
    Scene,
    dataset,
    holding,
    left_by,
    together,
)

OWN = """
from pipelines.corpus import Broken, Document, Options, Reading, Recipe, Rejected, always, strings
from pipelines.corpus import option, required_text


def pages(stream):
    for block in stream.read().split(b"%%"):
        if block == b"?":
            yield Broken("bad-archive", block)
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


def recipe(**changes):
    return Recipe(**{
        "name": "notes", "about": "Notes.", "pattern": ("*.pages",), "options": Options,
        "reading": always(Reading(read=pages)), "provenance": strings("kind"),
        "documents": documents, **changes})


RECIPE = RECIPE_HERE
"""


def own(recipe: str, pages: bytes = b"one note%%another note") -> Scene:
    """A corpus module whose recipe is made by an expression, and an input of it."""
    module = OWN.replace("RECIPE_HERE", recipe)
    return together(holding("notes.py", module), holding("in/a.pages", pages))


RUN = f"pipelines.text --input n=notes:in {TOKENIZER} --output out --languages all"

CORPORA = {
    "a recipe of an unknown field": (
        own("Recipe(nam='notes')"),
        (
            "the corpus notes: it cannot be imported: TypeError: Recipe.__init__() got an"
            " unexpected keyword argument 'nam' (…/notes.py:…). Correct its code"
        ),
    ),
    "columns that are no function": (
        own("recipe(provenance={})"),
        (
            "the corpus notes: the provenance of its recipe fails: TypeError: 'dict' object is not"
            " callable (…). Correct its code"
        ),
    ),
    "reader and format": (
        own("recipe(reading=always(Reading(read=pages, format='json')))"),
        (
            "the corpus notes: it cannot be imported: ValueError: a reading with a function has no"
            " format: 'json' (…). Correct its code"
        ),
    ),
    "an unknown format": (
        own("recipe(reading=always(Reading(format='csv', text_fields=('a',))))"),
        (
            "the corpus notes: it cannot be imported: ValueError: format must be auto or one of"
            " ('json', 'jsonl', 'lines', 'parquet'): 'csv' (…). Correct its code"
        ),
    ),
    "records of no byte": (
        own("recipe(reading=always(Reading(text_fields=('a',), max_record_bytes=0)))"),
        (
            "the corpus notes: it cannot be imported: ValueError: max_record_bytes must be at"
            " least 1, not 0 (…). Correct its code"
        ),
    ),
    "package is missing": (
        together(holding("notes.py", "import torchr\n"), holding("in/a.pages", "x")),
        (
            "the corpus notes: it cannot be imported: ModuleNotFoundError: No module named"
            " 'torchr' (…/notes.py:…). Correct its code"
        ),
    ),
}
MAKING = {
    "a reading that is none": (
        own("recipe(reading=Reading(text_fields=('a',)))"),
        (
            "the corpus notes: the reading of its recipe fails: TypeError: 'Reading' object is not"
            " callable (…). Correct its code"
        ),
    ),
}
READING = {
    "reader fails": (
        own("recipe()", b"one%%!"),
        (
            "The input …/in/a.pages: the corpus notes: its read() fails: KeyError: 'exclamation'"
            " (…/notes.py:…). Correct its code"
        ),
    ),
    "documents are none": (
        own("recipe(documents=nothing)"),
        (
            "the corpus notes: its documents() returns nothing for the record at 0 of"
            " …/in/a.pages: a record makes one document at least, if need be with a reason to"
            " leave it out, or raises Rejected"
        ),
    ),
    "documents fail": (
        own("recipe(documents=fails)"),
        (
            "the corpus notes: its documents() fails on the record at 0 of …/in/a.pages:"
            " ZeroDivisionError: division by zero (…/notes.py:…). Correct its code"
        ),
    ),
    "a text is half a character": (
        own("recipe(documents=returns((Document('\\ud800'),)))"),
        (
            "the corpus notes: it makes documents of …/in/a.pages that fit no table:"
            " UnicodeEncodeError: 'utf-8' codec can't encode character '\\ud800' in position 0:"
            " surrogates not allowed (…). Correct its code"
        ),
    ),
    "documents are rejected": (
        own("recipe(documents=rejects)"),
        (
            "no document is left of this input (2 no-good): look at --languages,"
            " --language-threshold and the options of the corpus"
        ),
    ),
    "records are broken": (
        own("recipe()", b"?%%?"),
        (
            "these records are bad-archive: the archives are damaged: fetch them again. So nothing"
            " of the source 'n' can be read: all 2 records, of …/in/a.pages, are rejected (2"
            " bad-archive). The first one, at number 0: ?. Is it the right folder, and the right"
            " corpus? python -m pipelines.look …/in/a.pages says what there is. To go on all the"
            " same, leave this source out of --input, or give --max-reject-rate 1"
        ),
    ),
}


def without(module: str, error: str = "ImportError('it is broken')") -> Scene:
    """A module of this name that cannot be imported."""
    return holding(f"{module}.py", f"raise {error}\n")


LIBRARIES = {
    "s3fs": (
        f"pipelines.text {TOKENIZER} --output out --input s3://bucket/in",
        without("s3fs"),
        "Reading s3:// needs a library that is not installed: pip install 'corpusmill[s3]'.",
    ),
    "gcsfs": (
        f"pipelines.text {TOKENIZER} --output out --input gs://bucket/in",
        without("gcsfs"),
        (
            "Reading gs:// needs a library that is not installed: Please install gcsfs to access"
            " Google Storage."
        ),
    ),
    "huggingface_hub": (
        f"pipelines.text {TOKENIZER} --output out --input hf:o/n",
        without("huggingface_hub"),
        (
            "Reading hf:o/n::train needs libraries that are not installed: pip install"
            " 'corpusmill[hub]'."
        ),
    ),
}


def edited_since(folder: Path) -> None:
    """The module of the corpus has another line."""
    with (folder / "notes.py").open("a") as module:
        module.write("# edited\n")


MADE = RUN.replace("--output out", "--output data")
own_dataset = left_by(MADE, own("recipe()"))


def being_written(folder: Path) -> None:
    """Another process writes the dataset."""
    (folder / "data").mkdir(exist_ok=True)
    held = os.open(folder / "data" / ".lock", os.O_RDWR | os.O_CREAT)  # until this process ends
    fcntl.flock(held, fcntl.LOCK_EX)
    os.ftruncate(held, 0)
    os.write(held, b"process 7 on host far")


DATA = f"pipelines.wudao --input in {TOKENIZER} --output data"

ROWS = (
    *(refused(f"own corpus: {x}", RUN, says, scene=scene) for x, (scene, says) in CORPORA.items()),
    *(opened(f"own corpus: {x}", RUN, says, scene=scene) for x, (scene, says) in MAKING.items()),
    *(mapped(f"own corpus: {x}", RUN, says, scene=scene) for x, (scene, says) in READING.items()),
    *(
        refused(f"without {x}", command, says, scene=scene, process=True)
        for x, (command, scene, says) in LIBRARIES.items()
    ),
    refused(
        "own corpus: edited since",
        MADE,
        "…/data holds a dataset made with other options: the code of the corpus of 'n' was edited"
        " since. Choose another --output, or give --overwrite to replace it",
        scene=together(own_dataset, edited_since),
    ),
    refused(
        "own corpus: gone since",
        MADE,
        "there is no corpus 'notes' (in an --input NAME=notes:PATH; a path with a colon begins"
        " with ./): a corpus is one of wudao, pile, fineweb, text, zhihu, zhidao, baike, cc_news,"
        " openwebtext, or a module with a RECIPE, such as my.notes, that lies in the working"
        " directory or is installed",
        scene=together(own_dataset, lambda folder: (folder / "notes.py").unlink()),
    ),
    refused(
        "being written: append",
        f"{DATA} --append",
        "…/data is being written by process 7 on host far; wait for it or choose another --output.",
        scene=together(dataset, being_written),
    ),
    opened(
        "without kenlm",
        "pipelines.wudao --output out --perplexity 'zh=k+p<=9'",
        "--perplexity needs kenlm, which cannot be imported (it is broken): pip install"
        " 'corpusmill[quality]'. It is compiled as it is installed, which takes a minute and a C++"
        " compiler (Debian, Ubuntu: apt-get install g++).",
        scene=together(without("kenlm"), holding("k"), holding("p")),
        process=True,
    ),
    refused(
        "without numba",
        "pipelines.map.compile",
        "numba is not installed, broken or switched off: pip install 'corpusmill[fast]'",
        before=(
            "^numba cannot be imported: ImportError: it is broken. Nothing is compiled, which is"
            " slower.$"
        ),
        scene=without("numba"),
        process=True,
    ),
)
