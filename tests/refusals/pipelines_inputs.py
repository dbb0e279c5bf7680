"""Inputs that are missing, cannot be read, are named badly, or are in the output."""

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


def all_empty(letters: str) -> Scene:
    return together(*(holding(f"in/{letter}.jsonl") for letter in letters))


def empty(folder: Path) -> None:
    (folder / "in").mkdir()


FOLDER = holding("corpora/pile/a.jsonl", LINES)

FOLDERS = {
    "empty folder": empty,
    "folder of CSV": holding("in/a.csv", "text\nx\n"),
    "folder of archives": holding("in/a.warc.gz", "x"),
    "empty file": together(lines, holding("in/b.jsonl")),
    "five empty files": all_empty("abcde"),
    "seven empty files": all_empty("abcdefg"),
    "pipe": together(lines, pipe),
    "name that is no UTF-8": together(lines, odd_name),
    "pointer of Git LFS": holding("in/a.jsonl", LFS),
    "pointer of git-annex": holding("in/a.jsonl", ANNEX),
    "link to nowhere": link("in/a.jsonl", "nowhere"),
    "link to itself": link("in/a.jsonl", "a.jsonl"),
    "output is a file": together(lines, holding("out", "x")),
    "work is a link": together(
        lines, link("out/.work", "../elsewhere"), holding("elsewhere/a", "x")
    ),
    "work holds a link": together(
        lines, link("out/.work/map", "../../elsewhere"), holding("elsewhere/a")
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
    # Where the output lies.
    f"pipelines.text {TOKENIZER} --input in --output in/out",
    f"pipelines.text {TOKENIZER} --input 'in/**/*.json' --output in/a",
    f"pipelines.text {TOKENIZER} --input in --output in",
    # Addresses and the hub.
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
    f"{TEXT} in --skip-unreadable": holding("in/a.jsonl", LFS),
    f"{TEXT} in --input b=other": TWO,
    f"{TEXT} in --input in/part-1.jsonl": lines,
    f"{TEXT} a=in --input a=other": TWO,
    f"{TEXT} in --input a=wudao:other": TWO,
    f"{TEXT} a=in --input b=b.jsonl": together(lines, link("b.jsonl", "in/part-1.jsonl")),
    f"{TEXT} news=in --input News=other": TWO,
    f"{TEXT} x=notes:in": together(lines, holding("notes.py", "CORPORA = 3\n")),
}

ROWS = (
    *(
        refused(command.replace(TOKENIZER, "TOKENIZER"), command, scene=scene)
        for command, scene in {**dict.fromkeys(COMMANDS, lines), **ELSEWHERE}.items()
    ),
    *(refused(name, f"{TEXT} in", scene=scene) for name, scene in FOLDERS.items()),
    Accepted(
        name="append: nothing yet",
        command=f"{TEXT} in --append",
        says=r"1 files or folders of the input are left for later: .*b\.jsonl is empty \(0 bytes\):"
        r" it is taken once it is not in: there is no file yet that can be read; nothing was made",
        scene=holding("in/b.jsonl"),
        writes=(),
    ),
    refused(
        "input of a module with another CORPUS",
        f"{TEXT} x=notes:in",
        scene=together(lines, holding("notes.py", "CORPUS = 3\n")),
    ),
)
