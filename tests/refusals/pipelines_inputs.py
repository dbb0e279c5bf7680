"""Inputs that are missing, cannot be read, are named badly, or lie where the output does."""

import os
from collections.abc import Mapping
from pathlib import Path

from tests.refusals.refusal import Accepted, Said, refused, with_scene
from tests.refusals.scenes import LINES, TOKENIZER, Scene, holding, lines, together

OUT = f"{TOKENIZER} --output out"
TEXT = f"pipelines.text {OUT} --input"
WUDAO = f"pipelines.wudao {OUT} --input"
TWO = together(lines, holding("other/part-2.jsonl", LINES))
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:9f\nsize 12345\n"
ANNEX = "/annex/objects/SHA256E-s12345--9f.jsonl\n"


def pipe(folder: Path) -> None:
    (folder / "in").mkdir(exist_ok=True)
    os.mkfifo(folder / "in" / "b.jsonl")


def odd_name(folder: Path) -> None:
    (Path(os.fsdecode(os.fsencode(folder) + b"/in/\xff.jsonl"))).write_text(LINES)


def link(path: str, target: str) -> Scene:
    def fill(folder: Path) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(target)

    return fill


def many_empty(folder: Path) -> None:
    (folder / "in").mkdir()
    for letter in "abcdefg":
        (folder / "in" / f"{letter}.jsonl").touch()


def seven(folder: Path) -> None:
    (folder / "in").mkdir()
    for letter in "gfedcba":
        (folder / "in" / letter).touch()


def empty(folder: Path) -> None:
    (folder / "in").mkdir()


FOLDER = holding("corpora/pile/a.jsonl", LINES)

FOLDERS = {
    "empty folder": (
        empty,
        "No file in in matches '*.jsonl' or '*.ndjson' or '*.json' or '*.txt', also with .gz,"
        " .zst, .bz2, or '*.parquet'; in is empty.",
    ),
    "folder of other files": (
        seven,
        "No file in in matches …; in holds a, b, c, d, e and 2 more. To see what they are: python"
        " -m pipelines.look in.",
    ),
    "folder of CSV": (
        holding("in/a.csv", "text\nx\n"),
        "No file in in matches '*.jsonl' or '*.ndjson' or '*.json' or '*.txt', also with .gz,"
        " .zst, .bz2, or '*.parquet'; in holds a.csv. CSV is read once it is Parquet: python -c"
        " \"import pyarrow.csv as c, pyarrow.parquet as p; p.write_table(c.read_csv('FILE.csv'),"
        " 'FILE.parquet')\".",
    ),
    "folder of archives": (
        holding("in/a.warc.gz", "x"),
        "No file in in matches …; in holds a.warc.gz. Unpack archives first; a corpus of your own"
        " reads other formats (docs/own.md).",
    ),
    "empty file": (
        together(lines, holding("in/b.jsonl")),
        "The input …/in/b.jsonl is empty (0 bytes): fetch it again. Mend the input, or remove what"
        " is not part of it, or give --skip-unreadable to go on without it.",
    ),
    "seven empty files": (
        many_empty,
        "7 files or folders of the input cannot be read: …/in/a.jsonl is empty (0 bytes): fetch it"
        " again; …/in/b.jsonl is empty (0 bytes): fetch it again; …/in/c.jsonl is empty (0 bytes):"
        " fetch it again; …/in/d.jsonl is empty (0 bytes): fetch it again; …/in/e.jsonl is empty"
        " (0 bytes): fetch it again and 2 more.…",
    ),
    "pipe": (
        together(lines, pipe),
        "The input …/in/b.jsonl is neither a file nor a folder.…",
    ),
    "name that is no UTF-8": (
        together(lines, odd_name),
        "The input …/in/\\xff.jsonl has a name that is not UTF-8: rename it.…",
    ),
    "pointer of Git LFS": (
        holding("in/a.jsonl", LFS),
        "The input …/in/a.jsonl stands for a file that was not fetched: git lfs pull fetches it.…",
    ),
    "pointer of git-annex": (
        holding("in/a.jsonl", ANNEX),
        "The input …/in/a.jsonl stands for a file that was not fetched: git annex get fetches it.…",
    ),
    "link to nowhere": (
        link("in/a.jsonl", "nowhere"),
        "The input …/in/a.jsonl is a link to nowhere, where there is nothing.…",
    ),
    "link to itself": (
        link("in/a.jsonl", "a.jsonl"),
        "The input …/in/a.jsonl is a link that leads to itself.…",
    ),
    "output is a file": (
        together(lines, holding("out", "x")),
        "the output …/out cannot be made: …/out is a file, where a folder is needed. Give another"
        " --output, or move the file away",
    ),
    "work is a link": (
        together(lines, link("out/.work", "../elsewhere"), holding("elsewhere/a", "x")),
        "…/out/.work is a link, to …/elsewhere: runs of several outputs could meet there, and"
        " clean up what is not theirs. Remove the link (what it points to stays), or give an"
        " --output on that disk",
    ),
    "work holds a link": (
        together(lines, link("out/.work/map", "../../elsewhere"), holding("elsewhere/a")),
        "…/out/.work/map is a link, to …/elsewhere: runs of several outputs could meet there, and"
        " clean up what is not theirs. Remove the link (what it points to stays), or give an"
        " --output on that disk",
    ),
}

COMMANDS: Mapping[str, Said] = {
    f"{TEXT} gone": "The input gone does not exist; . holds in.",
    f"{TEXT} corpra/pile/a.jsonl": (
        "The input corpra/pile/a.jsonl does not exist (did you mean corpora/pile/a.jsonl?); there"
        " is no folder corpra/pile.",
        FOLDER,
    ),
    f"{TEXT} {'x' * 300}": (
        "The input … cannot be reached (File name too long); check the path and the rights of its"
        " folders."
    ),
    f"{TEXT} 'in/a\nb'": "The input in/a␊b does not exist; in holds part-1.jsonl.",
    f"{TEXT} ''": (
        "the output …/out lies in the input : another run would read the dataset's own files as"
        " input. Give an --output outside of the input"
    ),
    f"{TEXT} 'in/*.zst'": (
        "No file matches in/*.zst; in holds part-1.jsonl. To see what they are: python -m"
        " pipelines.look in."
    ),
    f"{TEXT} in --skip-unreadable": (
        "The input …/in/a.jsonl stands for a file that was not fetched: git lfs pull fetches it."
        " Mend the input, or remove what is not part of it: nothing is left of this source.",
        holding("in/a.jsonl", LFS),
    ),
    f"{TEXT} hf:owner/name --watch": (
        "--watch follows folders, globs and URLs; a dataset of the hub as it is now"
        " (hf:owner/name) can be added with --append"
    ),
    # Names of inputs.
    f"{TEXT} 'my news=in'": (
        "The name 'my news' of the input 'my news=in' is not allowed: use letters, digits, dots,"
        " dashes and underscores, for example news=/data/news."
    ),
    f"{TEXT} in --input other": (
        "2 inputs were given and not all have a name; give each its own, for example"
        " news=/data/news books=/data/books.",
        TWO,
    ),
    f"{TEXT} a=in --input a=other": (
        "Two inputs are called 'a'; give each its own name.",
        TWO,
    ),
    f"{TEXT} in --input a=wudao:other": (
        "several inputs were given and not all have a name; give each one its own, for example"
        " --input zh=/data/wudao --input en=pile:/data/pile",
        TWO,
    ),
    f"{TEXT} a=in --input b=in/part-1.jsonl": (
        "The file …/in/part-1.jsonl is given twice, in 'a' as part-1.jsonl and in 'b' as"
        " part-1.jsonl; leave one out."
    ),
    f"{TEXT} a=in --input b=b.jsonl": (
        "The file …/b.jsonl is given twice, in 'a' as part-1.jsonl and in 'b' as b.jsonl; leave"
        " one out.",
        together(lines, link("b.jsonl", "in/part-1.jsonl")),
    ),
    f"{TEXT} ..=in": (
        "the source name '..' is not allowed: it becomes the name of a folder, and is to be the"
        " same on every file system. Use up to 100 letters A to Z, digits, underscores, dashes and"
        " dots, no dash or dot first and no dot last, no device of Windows and none of audit,"
        " dropped, rejects, signatures: for example --input news=/data/news"
    ),
    f"{TEXT} audit=in": "the source name 'audit' is not allowed…",
    f"{TEXT} x.=in": "the source name 'x.' is not allowed…",
    f"{TEXT} con=in": "the source name 'con' is not allowed…",
    f"{TEXT} {'n' * 101}=in": "the source name 'nnn…nnn' is not allowed…",
    f"{TEXT} news=in --input News=other": (
        "the sources 'News' and 'news' differ by nothing but upper and lower case, and would be"
        " one folder on file systems that make no difference: give one of them another name",
        TWO,
    ),
    # Corpora of inputs.
    f"{TEXT} x=pil:in": (
        "there is no corpus 'pil' (in an --input NAME=pil:PATH; a path with a colon begins with"
        " ./): did you mean pile? A corpus is one of wudao, pile, fineweb, text, zhihu, zhidao,"
        " baike, cc_news, openwebtext, or a module with a RECIPE, such as my.notes, that lies in"
        " the working directory or is installed"
    ),
    f"{TEXT} x=notes:in": (
        "there is no corpus 'notes' (in an --input NAME=notes:PATH; a path with a colon begins"
        " with ./):…",
        together(lines, holding("notes.py", "RECIPES = 3\n")),
    ),
    # Where the output lies.
    f"pipelines.text {TOKENIZER} --input in --output in/out": (
        "the output …/in/out lies in the input in: another run would read the dataset's own files"
        " as input. Give an --output outside of the input"
    ),
    f"pipelines.text {TOKENIZER} --input 'in/**/*.json' --output in/a": (
        "the output …/in/a lies in the input in/**/*.json: another run would read the dataset's"
        " own files as input. Give an --output outside of the input"
    ),
    f"pipelines.text {TOKENIZER} --input in --output in": (
        "the input in is the output …/in, or lies in it: a dataset has its folder for itself. Give"
        " an --output of its own, apart from the input"
    ),
    f"pipelines.text {TOKENIZER} --input a=text:in/x --output in": (
        "the input in/x is the output …/in, or lies in it: a dataset has its folder for itself."
        " Give an --output of its own, apart from the input",
        holding("in/x/a.jsonl", LINES),
    ),
    # Addresses and the hub.
    f"{TEXT} s3://me:secret@bucket/in": (
        "The input s3://bucket/in was given with a password, but addresses are written beside the"
        " dataset. Leave it out and set FSSPEC_S3_USERNAME and FSSPEC_S3_PASSWORD, or whatever the"
        " protocol's library reads."
    ),
    f"{TEXT} 'https://host/a.jsonl?sig=secret'": (
        "The input https://host/a.jsonl was given with a query (?...), parameters (;...) or a"
        " fragment (#...), which may contain a signature, but addresses are written beside the"
        " dataset. Leave it out, or download the file first."
    ),
    f"{TEXT} zip://a.jsonl::s3://bucket/b.zip": (
        "The input zip://a.jsonl::s3://bucket/b.zip is a chain of addresses; give the address of"
        " plain files instead."
    ),
    f"{TEXT} foo://bucket/in": (
        "The input foo://bucket/in cannot be read (Protocol not known: foo). Check the address,"
        " the credentials and the connection."
    ),
    f"{TEXT} memory://bucket/in": (
        "The input memory://bucket/in does not exist or is not visible to you. Check the address,"
        " the credentials and the connection."
    ),
    f"pipelines.text {TOKENIZER} --input in --output 's3://bucket/o*t'": (
        "The place s3://bucket/o*t has '*' in its name, which libraries take for a wildcard:"
        " choose another name."
    ),
    f"pipelines.text {TOKENIZER} --input s3://bucket/in --output s3a://bucket/in/out": (
        "the output s3a://bucket/in/out lies in the input s3://bucket/in: another run would read"
        " the dataset's own files as input. Give an --output outside of the input"
    ),
    f"{TEXT} hf:": (
        "The input hf: does not name a dataset of the Hugging Face hub; write"
        " hf:OWNER/NAME[@REVISION][:CONFIG[:SPLIT]], for example"
        " hf:HuggingFaceFW/fineweb-2:cmn_Hani."
    ),
    f"{TEXT} hf:owner/name:": (
        "The dataset hf:owner/name::train cannot be read from https://huggingface.co (…). Check"
        " its name, config and split, that its terms are accepted"
        " (https://huggingface.co/datasets/owner/name) and HF_TOKEN is set if it is gated or"
        " private, the connection, HF_ENDPOINT if a mirror is used, and that HF_HUB_OFFLINE is not"
        " set; or name its files by a URL, hf://datasets/owner/name/FOLDER, or download them and"
        " pass their folder."
    ),
}

ROWS = (
    *(
        refused(command.replace(TOKENIZER, "TOKENIZER"), command, says, scene=scene)
        for command, (says, scene) in (
            (command, with_scene(said, lines)) for command, said in COMMANDS.items()
        )
    ),
    *(refused(name, f"{TEXT} in", says, scene=scene) for name, (scene, says) in FOLDERS.items()),
    Accepted(
        name="append: nothing yet",
        command=f"{TEXT} in --append",
        says=r"1 files or folders of the input are left for later: .*b\.jsonl is empty \(0 bytes\):"
        r" it is taken once it is not in: there is no file yet that can be read; nothing was made",
        scene=holding("in/b.jsonl"),
        writes=(),
    ),
    refused(
        "input of a module with another RECIPE",
        f"{TEXT} x=notes:in",
        "notes is no corpus: a corpus has a Recipe that is called RECIPE",
        scene=together(lines, holding("notes.py", "RECIPE = 3\n")),
    ),
)
