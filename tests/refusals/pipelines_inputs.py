"""Inputs that are missing, cannot be read, are named badly, or lie where the output does."""

import os
from pathlib import Path

from tests.refusals.refusal import Accepted, refused
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

ROWS = (
    refused(
        "input that does not exist",
        f"{TEXT} gone",
        "The input gone does not exist; . holds in.",
        scene=lines,
    ),
    refused(
        "input of another folder",
        f"{TEXT} corpra/pile/a.jsonl",
        "The input corpra/pile/a.jsonl does not exist (did you mean corpora/pile/a.jsonl?); there"
        " is no folder corpra/pile.",
        scene=FOLDER,
    ),
    refused(
        "input of another name",
        f"{TEXT} corpora/pile/a.json",
        "The input corpora/pile/a.json does not exist (did you mean corpora/pile/a.jsonl?);"
        " corpora/pile holds a.jsonl.",
        scene=FOLDER,
    ),
    refused(
        "input below what is not there",
        f"{TEXT} corpra/other",
        "The input corpra/other does not exist (did you mean corpora?); there is no folder corpra.",
        scene=FOLDER,
    ),
    refused(
        "input unlike all there is",
        f"{TEXT} corpora/zzz",
        "The input corpora/zzz does not exist; corpora holds pile.",
        scene=FOLDER,
    ),
    refused(
        "input below a file",
        f"{TEXT} in/part-1.jsonl/x",
        "The input in/part-1.jsonl/x does not exist; there is no folder in/part-1.jsonl.",
        scene=lines,
    ),
    refused(
        "input of a name too long",
        f"{TEXT} {'x' * 300}",
        "The input"
        " …"
        " cannot be reached (File name too long); check the path and the rights of its folders.",
        scene=lines,
    ),
    refused(
        "input with a line break",
        f"{TEXT} 'in/a\nb'",
        "The input in/a␊b does not exist; in holds part-1.jsonl.",
        scene=lines,
    ),
    refused(
        "input that is empty words",
        f"{TEXT} ''",
        "the output …/out lies in the input : another run would read the dataset's own files as"
        " input. Give an --output outside of the input",
        scene=lines,
    ),
    refused(
        "empty folder",
        f"{TEXT} in",
        "No file in in matches '*.jsonl' or '*.ndjson' or '*.json' or '*.txt', also with .gz, .zst,"
        " .bz2, or '*.parquet'; in is empty.",
        scene=empty,
    ),
    refused(
        "folder of other files",
        f"{TEXT} in",
        "No file in in matches …; in holds a, b, c, d, e and 2 more. To see what they are: python"
        " -m pipelines.look in.",
        scene=seven,
    ),
    refused(
        "folder of another corpus",
        f"{WUDAO} in",
        "No file in in matches 'part-*.json'; in holds part-1.jsonl. To see what they are: python"
        " -m pipelines.look in.",
        scene=lines,
    ),
    refused(
        "folder of CSV",
        f"{TEXT} in",
        "No file in in matches '*.jsonl' or '*.ndjson' or '*.json' or '*.txt', also with .gz, .zst,"
        " .bz2, or '*.parquet'; in holds a.csv. CSV is read once it is Parquet: python -c \"import"
        " pyarrow.csv as c, pyarrow.parquet as p; p.write_table(c.read_csv('FILE.csv'),"
        " 'FILE.parquet')\".",
        scene=holding("in/a.csv", "text\nx\n"),
    ),
    refused(
        "folder of packed TSV",
        f"{TEXT} in",
        "No file in in matches …; in holds a.TSV.gz. CSV is read once it is Parquet: python -c"
        " \"import pyarrow.csv as c, pyarrow.parquet as p; p.write_table(c.read_csv('FILE.csv'),"
        " 'FILE.parquet')\".",
        scene=holding("in/a.TSV.gz", "x"),
    ),
    refused(
        "folder of archives",
        f"{TEXT} in",
        "No file in in matches …; in holds a.warc.gz. Unpack archives first; a corpus of your own"
        " reads other formats (docs/own.md).",
        scene=holding("in/a.warc.gz", "x"),
    ),
    refused(
        "folder of PDF",
        f"{TEXT} in",
        "No file in in matches …; in holds a.pdf. Unpack archives first; a corpus of your own reads"
        " other formats (docs/own.md).",
        scene=holding("in/a.pdf", "x"),
    ),
    refused(
        "glob without a file",
        f"{TEXT} 'in/*.zst'",
        "No file matches in/*.zst; in holds part-1.jsonl. To see what they are: python -m"
        " pipelines.look in.",
        scene=lines,
    ),
    refused(
        "glob without a folder",
        f"{TEXT} 'on/*.jsonl'",
        "No file matches on/*.jsonl; there is no folder on.",
        scene=lines,
    ),
    refused(
        "glob below a missing folder",
        f"{TEXT} 'in/**/b*.jsonl'",
        "No file matches in/**/b*.jsonl; in holds part-1.jsonl. To see what they are: python -m"
        " pipelines.look in.",
        scene=lines,
    ),
    refused(
        "empty file",
        f"{TEXT} in",
        "The input …/in/b.jsonl is empty (0 bytes): fetch it again. Mend the input, or remove what"
        " is not part of it, or give --skip-unreadable to go on without it.",
        scene=together(lines, holding("in/b.jsonl")),
    ),
    refused(
        "empty file alone",
        f"{TEXT} in/b.jsonl",
        "The input …/in/b.jsonl is empty (0 bytes): fetch it again.…",
        scene=holding("in/b.jsonl"),
    ),
    refused(
        "seven empty files",
        f"{TEXT} in",
        "7 files or folders of the input cannot be read: …/in/a.jsonl is empty (0 bytes): fetch it"
        " again; …/in/b.jsonl is empty (0 bytes): fetch it again; …/in/c.jsonl is empty (0 bytes):"
        " fetch it again; …/in/d.jsonl is empty (0 bytes): fetch it again; …/in/e.jsonl is empty (0"
        " bytes): fetch it again and 2 more.…",
        scene=many_empty,
    ),
    refused(
        "pipe",
        f"{TEXT} in",
        "The input …/in/b.jsonl is neither a file nor a folder.…",
        scene=together(lines, pipe),
    ),
    refused(
        "pipe alone",
        f"{TEXT} in/b.jsonl",
        "The input …/in/b.jsonl is neither a file nor a folder.…",
        scene=pipe,
    ),
    refused(
        "name that is no UTF-8",
        f"{TEXT} in",
        "The input …/in/\\xff.jsonl has a name that is not UTF-8: rename it.…",
        scene=together(lines, odd_name),
    ),
    refused(
        "pointer of Git LFS",
        f"{TEXT} in",
        "The input …/in/a.jsonl stands for a file that was not fetched: git lfs pull fetches it.…",
        scene=holding("in/a.jsonl", LFS),
    ),
    refused(
        "pointer of git-annex",
        f"{TEXT} in",
        "The input …/in/a.jsonl stands for a file that was not fetched: git annex get fetches it.…",
        scene=holding("in/a.jsonl", ANNEX),
    ),
    refused(
        "link to nowhere",
        f"{TEXT} in",
        "The input …/in/a.jsonl is a link to nowhere, where there is nothing.…",
        scene=link("in/a.jsonl", "nowhere"),
    ),
    refused(
        "link to nowhere named",
        f"{TEXT} a.jsonl",
        "The input …/a.jsonl is a link to nowhere, where there is nothing.…",
        scene=link("a.jsonl", "nowhere"),
    ),
    refused(
        "link to itself",
        f"{TEXT} in",
        "The input …/in/a.jsonl is a link that leads to itself.…",
        scene=link("in/a.jsonl", "a.jsonl"),
    ),
    refused(
        "all unreadable, and skipped",
        f"{TEXT} in --skip-unreadable",
        "The input …/in/a.jsonl stands for a file that was not fetched: git lfs pull fetches it."
        " Mend the input, or remove what is not part of it: nothing is left of this source.",
        scene=holding("in/a.jsonl", LFS),
    ),
    refused(
        "append: no such folder",
        f"{TEXT} im --append",
        "The input im does not exist; . holds in.",
        scene=lines,
    ),
    refused(
        "watch: no such folder",
        f"{TEXT} im --watch",
        "The input im does not exist; . holds in.",
        scene=lines,
    ),
    refused(
        "watch: no folder for a glob",
        f"{TEXT} 'on/*.jsonl' --watch",
        "No file matches on/*.jsonl; there is no folder on.",
        scene=lines,
    ),
    refused(
        "watch: a dataset of the hub",
        f"{TEXT} hf:owner/name --watch",
        "--watch follows folders, globs and URLs; a dataset of the hub as it is now (hf:owner/name)"
        " can be added with --append",
    ),
    Accepted(
        name="append: nothing yet",
        command=f"{TEXT} in --append",
        says=r"1 files or folders of the input are left for later: .*b\.jsonl is empty \(0 bytes\):"
        r" it is taken once it is not in: there is no file yet that can be read; nothing was made",
        scene=holding("in/b.jsonl"),
        writes=(),
    ),
    # Names of inputs.
    refused(
        "input without a path",
        f"{TEXT} news=",
        "the output …/out lies in the input : another run would read the dataset's own files as"
        " input. Give an --output outside of the input",
        scene=lines,
    ),
    refused(
        "input of a name with a space",
        f"{TEXT} 'my news=in'",
        "The name 'my news' of the input 'my news=in' is not allowed: use letters, digits, dots,"
        " dashes and underscores, for example news=/data/news.",
        scene=lines,
    ),
    refused(
        "second input without a name",
        f"{TEXT} in --input other",
        "2 inputs were given and not all have a name; give each its own, for example"
        " news=/data/news books=/data/books.",
        scene=TWO,
    ),
    refused(
        "one of two inputs without a name",
        f"{TEXT} a=in --input other",
        "2 inputs were given and not all have a name; give each its own, for example"
        " news=/data/news books=/data/books.",
        scene=TWO,
    ),
    refused(
        "two inputs of one name",
        f"{TEXT} a=in --input a=other",
        "Two inputs are called 'a'; give each its own name.",
        scene=TWO,
    ),
    refused(
        "two inputs of one name, of two corpora",
        f"{TEXT} a=in --input a=wudao:other",
        "No file in other matches 'part-*.json'; other holds part-2.jsonl. To see what they are:"
        " python -m pipelines.look other.",
        scene=TWO,
    ),
    refused(
        "second input without a name, of two corpora",
        f"{TEXT} in --input a=wudao:other",
        "several inputs were given and not all have a name; give each one its own, for example"
        " --input zh=/data/wudao --input en=pile:/data/pile",
        scene=TWO,
    ),
    refused(
        "file given twice",
        f"{TEXT} a=in --input b=in/part-1.jsonl",
        "The file …/in/part-1.jsonl is given twice, in 'a' as part-1.jsonl and in 'b' as"
        " part-1.jsonl; leave one out.",
        scene=lines,
    ),
    refused(
        "file given twice by a link",
        f"{TEXT} a=in --input b=b.jsonl",
        "The file …/b.jsonl is given twice, in 'a' as part-1.jsonl and in 'b' as b.jsonl; leave one"
        " out.",
        scene=together(lines, link("b.jsonl", "in/part-1.jsonl")),
    ),
    refused(
        "source called ..",
        f"{TEXT} ..=in",
        "the source name '..' is not allowed: it becomes the name of a folder, and is to be the"
        " same on every file system. Use up to 100 letters A to Z, digits, underscores, dashes and"
        " dots, no dash or dot first and no dot last, no device of Windows and none of audit,"
        " dropped, rejects, signatures: for example --input news=/data/news",
        scene=lines,
    ),
    refused(
        "source called audit",
        f"{TEXT} audit=in",
        "the source name 'audit' is not allowed…",
        scene=lines,
    ),
    refused(
        "source called .x", f"{TEXT} .x=in", "the source name '.x' is not allowed…", scene=lines
    ),
    refused(
        "source called -x",
        f"{TEXT} ./-x=in --input=-x=in",
        "the source name '-x' is not allowed…",
        scene=lines,
    ),
    refused(
        "source called x.", f"{TEXT} x.=in", "the source name 'x.' is not allowed…", scene=lines
    ),
    refused(
        "source called con",
        f"{TEXT} con=in",
        "the source name 'con' is not allowed…",
        scene=lines,
    ),
    refused(
        "source of too long a name",
        f"{TEXT} {'n' * 101}=in",
        "the source name 'nnn…nnn' is not allowed…",
        scene=lines,
    ),
    refused(
        "sources of names alike",
        f"{TEXT} news=in --input News=other",
        "the sources 'News' and 'news' differ by nothing but upper and lower case, and would be one"
        " folder on file systems that make no difference: give one of them another name",
        scene=TWO,
    ),
    # Corpora of inputs.
    refused(
        "input of no corpus",
        f"{TEXT} x=pil:in",
        "there is no corpus 'pil' (in an --input NAME=pil:PATH; a path with a colon begins with"
        " ./): did you mean pile? A corpus is one of wudao, pile, fineweb, text, zhihu, zhidao,"
        " baike, cc_news, openwebtext, or a module with a RECIPE, such as my.notes, that lies in"
        " the working directory or is installed",
        scene=lines,
    ),
    refused(
        "input of no corpus alike",
        f"{TEXT} x=zzzzzz:in",
        "there is no corpus 'zzzzzz' (in an --input NAME=zzzzzz:PATH; a path with a colon begins"
        " with ./): a corpus is one of wudao, pile, fineweb, text, zhihu, zhidao, baike, cc_news,"
        " openwebtext, or a module with a RECIPE, such as my.notes, that lies in the working"
        " directory or is installed",
        scene=lines,
    ),
    refused(
        "input of no module",
        f"{TEXT} x=my.notes:in",
        "there is no corpus 'my.notes' (in an --input NAME=my.notes:PATH; a path with a colon"
        " begins with ./):…",
        scene=lines,
    ),
    refused(
        "input of a module without a recipe",
        f"{TEXT} x=notes:in",
        "there is no corpus 'notes' (in an --input NAME=notes:PATH; a path with a colon begins with"
        " ./):…",
        scene=together(lines, holding("notes.py", "RECIPES = 3\n")),
    ),
    refused(
        "input of a module with another RECIPE",
        f"{TEXT} x=notes:in",
        "notes is no corpus: a corpus has a Recipe that is called RECIPE",
        scene=together(lines, holding("notes.py", "RECIPE = 3\n")),
    ),
    refused(
        "input of a module that breaks",
        f"{TEXT} x=notes:in",
        "the corpus notes: it cannot be imported: ZeroDivisionError: division by zero"
        " (…/notes.py:1). Correct its code",
        scene=together(lines, holding("notes.py", "1 / 0\n")),
    ),
    # Where the output lies.
    refused(
        "output in the input",
        f"pipelines.text {TOKENIZER} --input in --output in/out",
        "the output …/in/out lies in the input in: another run would read the dataset's own files"
        " as input. Give an --output outside of the input",
        scene=lines,
    ),
    refused(
        "output in a glob",
        f"pipelines.text {TOKENIZER} --input 'in/**/*.json' --output in/a",
        "the output …/in/a lies in the input in/**/*.json: another run would read the dataset's own"
        " files as input. Give an --output outside of the input",
        scene=lines,
    ),
    refused(
        "output is the input",
        f"pipelines.text {TOKENIZER} --input in --output in",
        "the input in is the output …/in, or lies in it: a dataset has its folder for itself. Give"
        " an --output of its own, apart from the input",
        scene=lines,
    ),
    refused(
        "input in the output",
        f"pipelines.text {TOKENIZER} --input a=text:in/x --output in",
        "the input in/x is the output …/in, or lies in it: a dataset has its folder for itself."
        " Give an --output of its own, apart from the input",
        scene=holding("in/x/a.jsonl", LINES),
    ),
    refused(
        "output is a file",
        f"{TEXT} in",
        "the output …/out cannot be made: …/out is a file, where a folder is needed. Give another"
        " --output, or move the file away",
        scene=together(lines, holding("out", "x")),
    ),
    refused(
        "output below a file",
        f"pipelines.text {TOKENIZER} --input in --output out/a/b",
        "the output …/out/a/b cannot be made: …/out is a file, where a folder is needed. Give"
        " another --output, or move the file away",
        scene=together(lines, holding("out", "x")),
    ),
    refused(
        "work is a link",
        f"{TEXT} in",
        "…/out/.work is a link, to …/elsewhere: runs of several outputs could meet there, and clean"
        " up what is not theirs. Remove the link (what it points to stays), or give an --output on"
        " that disk",
        scene=together(lines, link("out/.work", "../elsewhere"), holding("elsewhere/a", "x")),
    ),
    refused(
        "work holds a link",
        f"{TEXT} in",
        "…/out/.work/map is a link, to …/elsewhere: runs of several outputs could meet there, and"
        " clean up what is not theirs. Remove the link (what it points to stays), or give an"
        " --output on that disk",
        scene=together(lines, link("out/.work/map", "../../elsewhere"), holding("elsewhere/a")),
    ),
    # Addresses.
    refused(
        "address with a password",
        f"{TEXT} s3://me:secret@bucket/in",
        "The input s3://bucket/in was given with a password, but addresses are written beside the"
        " dataset. Leave it out and set FSSPEC_S3_USERNAME and FSSPEC_S3_PASSWORD, or whatever the"
        " protocol's library reads.",
    ),
    refused(
        "address with a query",
        f"{TEXT} 'https://host/a.jsonl?sig=secret'",
        "The input https://host/a.jsonl was given with a query (?...), parameters (;...) or a"
        " fragment (#...), which may contain a signature, but addresses are written beside the"
        " dataset. Leave it out, or download the file first.",
    ),
    refused(
        "address with a fragment",
        f"{TEXT} 'https://host/a.jsonl#secret'",
        "The input https://host/a.jsonl was given with a query (?...), parameters (;...) or a"
        " fragment (#...), which may contain a signature, but addresses are written beside the"
        " dataset. Leave it out, or download the file first.",
    ),
    refused(
        "address of addresses",
        f"{TEXT} zip://a.jsonl::s3://bucket/b.zip",
        "The input zip://a.jsonl::s3://bucket/b.zip is a chain of addresses; give the address of"
        " plain files instead.",
    ),
    refused(
        "address of no protocol",
        f"{TEXT} foo://bucket/in",
        "The input foo://bucket/in cannot be read (Protocol not known: foo). Check the address, the"
        " credentials and the connection.",
    ),
    refused(
        "address of nothing",
        f"{TEXT} memory://bucket/in",
        "The input memory://bucket/in does not exist or is not visible to you. Check the address,"
        " the credentials and the connection.",
    ),
    refused(
        "address of no file",
        f"{TEXT} 'memory://bucket/*.jsonl'",
        "The input memory://bucket/*.jsonl does not exist or is not visible to you (/bucket). Check"
        " the address, the credentials and the connection.",
    ),
    refused(
        "output at an address with a password",
        f"pipelines.text {TOKENIZER} --input in --output s3://me:secret@bucket/out",
        "The place s3://bucket/out was given with a password, but addresses are written beside the"
        " dataset. Leave it out and set FSSPEC_S3_USERNAME and FSSPEC_S3_PASSWORD, or whatever the"
        " protocol's library reads.",
        scene=lines,
    ),
    refused(
        "output at an address with a wildcard",
        f"pipelines.text {TOKENIZER} --input in --output 's3://bucket/o*t'",
        "The place s3://bucket/o*t has '*' in its name, which libraries take for a wildcard: choose"
        " another name.",
        scene=lines,
    ),
    refused(
        "output at the address of the input",
        f"pipelines.text {TOKENIZER} --input s3://bucket/in --output s3a://bucket/in/out",
        "the output s3a://bucket/in/out lies in the input s3://bucket/in: another run would read"
        " the dataset's own files as input. Give an --output outside of the input",
    ),
    refused(
        "output above the address of the input",
        f"pipelines.text {TOKENIZER} --input s3://bucket/in --output s3://bucket",
        "the input s3://bucket/in is the output s3://bucket, or lies in it: a dataset has its"
        " folder for itself. Give an --output of its own, apart from the input",
    ),
    # The hub.
    refused(
        "hub without a name",
        f"{TEXT} hf:",
        "The input hf: does not name a dataset of the Hugging Face hub; write"
        " hf:OWNER/NAME[@REVISION][:CONFIG[:SPLIT]], for example"
        " hf:HuggingFaceFW/fineweb-2:cmn_Hani.",
    ),
    refused(
        "hub without an owner",
        f"{TEXT} hf:a/b/c",
        "The input hf:a/b/c does not name a dataset of the Hugging Face hub; write"
        " hf:OWNER/NAME[@REVISION][:CONFIG[:SPLIT]], for example"
        " hf:HuggingFaceFW/fineweb-2:cmn_Hani.",
    ),
    refused(
        "hub that is not reached",
        f"{TEXT} hf:owner/name:",
        "The dataset hf:owner/name::train cannot be read from https://huggingface.co (…). Check its"
        " name, config and split, that its terms are accepted"
        " (https://huggingface.co/datasets/owner/name) and HF_TOKEN is set if it is gated or"
        " private, the connection, HF_ENDPOINT if a mirror is used, and that HF_HUB_OFFLINE is not"
        " set; or name its files by a URL, hf://datasets/owner/name/FOLDER, or download them and"
        " pass their folder.",
    ),
)
