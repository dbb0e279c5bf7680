"""Inputs that are missing, unreadable, badly named, or inside the output."""

import os
from pathlib import Path

from tests.refusals.refusal import Accepted, refused
from tests.refusals.setups import LINES, TOKENIZER, Setup, all_of, lines, with_file

OUT = f"{TOKENIZER} --output out"
TEXT = f"pipelines.text {OUT} --input"
TWO = all_of(lines, with_file("other/part-2.jsonl", LINES))
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:9f\nsize 12345\n"
ANNEX = "/annex/objects/SHA256E-s12345--9f.jsonl\n"


def pipe(folder: Path) -> None:
    (folder / "in").mkdir(exist_ok=True)
    os.mkfifo(folder / "in" / "b.jsonl")


def odd_name(folder: Path) -> None:
    (Path(os.fsdecode(os.fsencode(folder) + b"/in/\xff.jsonl"))).write_text(LINES)


def link(path: str, target: str) -> Setup:
    def fill(folder: Path) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(target)

    return fill


def all_empty(letters: str) -> Setup:
    return all_of(*(with_file(f"in/{letter}.jsonl") for letter in letters))


def empty(folder: Path) -> None:
    (folder / "in").mkdir()


FOLDER = with_file("corpora/pile/a.jsonl", LINES)

FOLDERS = {
    "empty folder": empty,
    "folder of CSV": with_file("in/a.csv", "text\nx\n"),
    "folder of archives": with_file("in/a.warc.gz", "x"),
    "empty file": all_of(lines, with_file("in/b.jsonl")),
    "five empty files": all_empty("abcde"),
    "seven empty files": all_empty("abcdefg"),
    "pipe": all_of(lines, pipe),
    "name that is no UTF-8": all_of(lines, odd_name),
    "pointer of Git LFS": with_file("in/a.jsonl", LFS),
    "pointer of git-annex": with_file("in/a.jsonl", ANNEX),
    "link to nowhere": link("in/a.jsonl", "nowhere"),
    "link to itself": link("in/a.jsonl", "a.jsonl"),
    "output is a file": all_of(lines, with_file("out", "x")),
    "work is a link": all_of(
        lines, link("out/.work", "../elsewhere"), with_file("elsewhere/a", "x")
    ),
    "work holds a link": all_of(
        lines, link("out/.work/map", "../../elsewhere"), with_file("elsewhere/a")
    ),
}

COMMANDS = (
    f"{TEXT} gone",
    f"{TEXT} {'x' * 300}",
    f"{TEXT} 'in/a\nb'",
    f"{TEXT} ''",
    f"{TEXT} 'in/*.zst'",
    f"{TEXT} hf:owner/name --watch",
    # Names of inputs.
    f"{TEXT} 'my news=in'",
    f"{TEXT} ..=in",
    f"{TEXT} audit=in",
    f"{TEXT} con=in",
    f"{TEXT} {'n' * 101}=in",
    # Corpora of inputs.
    f"{TEXT} x=pil:in",
    # Outputs inside inputs.
    f"pipelines.text {TOKENIZER} --input in --output in/out",
    f"pipelines.text {TOKENIZER} --input 'in/**/*.json' --output in/a",
    f"pipelines.text {TOKENIZER} --input in --output in",
    # Addresses, including those of the hub.
    f"{TEXT} s3://me:secret@bucket/in",
    f"{TEXT} 'https://host/a.jsonl?sig=secret'",
    f"{TEXT} zip://a.jsonl::s3://bucket/b.zip",
    f"{TEXT} foo://bucket/in",
    f"{TEXT} memory://bucket/in",
    f"pipelines.text {TOKENIZER} --input in --output 's3://bucket/o*t'",
    f"pipelines.text {TOKENIZER} --input s3://bucket/in --output s3a://bucket/in/out",
    f"{TEXT} hf:",
    f"{TEXT} hf:owner/name:",
)
ELSEWHERE = {
    f"{TEXT} corpra/pile/a.jsonl": FOLDER,
    f"{TEXT} in --skip-unreadable": with_file("in/a.jsonl", LFS),
    f"{TEXT} in --input b=other": TWO,
    f"{TEXT} in --input in/part-1.jsonl": lines,
    f"{TEXT} a=in --input a=other": TWO,
    f"{TEXT} in --input a=wudao:other": TWO,
    f"{TEXT} a=in --input b=b.jsonl": all_of(lines, link("b.jsonl", "in/part-1.jsonl")),
    f"{TEXT} news=in --input News=other": TWO,
    f"{TEXT} x=notes:in": all_of(lines, with_file("notes.py", "CORPORA = 3\n")),
}

ROWS = (
    refused(
        "two inputs of one name, each of its corpus",
        f"pipelines.text {TOKENIZER} --input a=in --input a=wudao:w",
        setup=all_of(lines, with_file("w/part-1.json", "[]")),
    ),
    refused("word that is no UTF-8", f"{TEXT} in 'in/\udcff'", setup=lines),
    *(
        refused(command.replace(TOKENIZER, "TOKENIZER"), command, setup=setup)
        for command, setup in {**dict.fromkeys(COMMANDS, lines), **ELSEWHERE}.items()
    ),
    *(refused(name, f"{TEXT} in", setup=setup) for name, setup in FOLDERS.items()),
    Accepted(
        name="append: nothing yet",
        command=f"{TEXT} in --append",
        message=r"1 files or folders of the input are left for a later run: .*b\.jsonl is empty "
        r"\(0 bytes\): it is read once it has content in: there is no file yet that can be read; "
        r"nothing was made",
        setup=with_file("in/b.jsonl"),
        may_write=(),
    ),
    refused(
        "input of a module with another CORPUS",
        f"{TEXT} x=notes:in",
        setup=all_of(lines, with_file("notes.py", "CORPUS = 3\n")),
    ),
)
