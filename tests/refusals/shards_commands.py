"""Command lines of `python -m shards` and of the console script that are refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.refusals.refusal import Accepted, Refusal, Said, with_scene
from tests.refusals.scenes import Scene, holding, together
from tests.refusals.scenes_shards import (
    another,
    dataset,
    exported,
    first,
    holding_json,
    json_changed,
    linked,
    placed,
    removed,
)

_HELP = r" python -m shards {} --help lists every flag$"


def _row(command: str, said: Said, **more: Any) -> Refusal:
    says, scene = with_scene(said, dataset)
    return Refusal(name=command, command=f"shards {command}", says=says, scene=scene, **more)


_NODE = r"^node 0 of 1: the whole corpus$"


_FULL = r"name an empty folder, or delete that one first\.$"
_OF = (
    r", which export\.json there describes: of another dataset or manifest, with other flags, or "
    r"before more documents were removed: "
)
_OF_NAMES = {
    "without names": (" \n\n", r"names has no names in it: write one a line\.$"),
    "not UTF-8": (b"a\xff\n", r"names is not UTF-8 \(.*0xff.*\): write one name a line\.$"),
}
_ONTO: Mapping[str, tuple[Scene, str]] = {
    "a folder that holds much": (
        together(holding("out/x"), holding("out/a"), holding("out/z")),
        r"--output out exists and holds a and 2 more, which no export has put there: name an"
        r" empty folder\.$",
    ),
    "a file": (holding("out"), r"--output out is a file: name an empty folder\.$"),
    "an export of other sources": (exported, r"--output out holds another export" + _OF + _FULL),
    "an export whose description was changed": (
        together(exported, json_changed("out/export.json", "manifest", 9)),
        r"--output out holds another export" + _OF + _FULL,
    ),
}
_PLACED: Mapping[str, Said] = {
    "place data": r"say where to: --to DISK, a folder on the node's own disk; or --list\.$",
    "place data --to data/disk": (
        r"--to data/disk is the dataset's own folder, or lies in it: name a folder on the node's"
        r" own disk\.$"
    ),
    "place data --to data": r"--to data is the dataset's own folder, or lies in it: ",
    "place data --to disk": (
        r"--to disk holds text, manifest \d: another dataset or build than data, or newer than its"
        r" manifest 3\. Name an empty folder, or delete that one first\.$",
        together(dataset, another),
    ),
    "place data@2 --to disk": (
        r"--to disk holds text, manifest 3: .* or newer than its manifest 2\.",
        together(dataset, placed),
    ),
}
"""What is refused once the node has said its share."""

_TAKEN: Mapping[str, Said] = {
    "inspect data --doc 131": r"document 131 of 132 \(train\)",
    "inspect data --doc 1 --source new --split validation": r"document 1 of 2 \(validation\)",
    "place data --to disk": (r"0 bytes copied to disk", together(dataset, placed)),
    "place data --nodes 2,1 --node 1 --list": r"^node 1 of 2: the whole corpus",
    "place data --scatters 2 --nodes 1,1 --node 1 --list": r"scatters 1 of 2",
    "remove data --id a-99 --reason x --missing-ok": r"nothing was changed$",
    "remove data --url 'https://b.example/1*' --dry-run": r"^data: 11 documents of ",
    "export data --to numpy --source docs --output out": (
        r" 6 were there",
        together(dataset, exported),
    ),
    "megatron data:notes": r"^--train-data-path \d+ /",
}
"""At bounds, on the side that is taken; more of it is in golden rows."""


def _cut_short(folder: Path) -> None:
    shard = next((folder / "data").glob("g*/docs/00001.bin"))
    shard.write_bytes(shard.read_bytes()[:-2])


_REFUSED: Mapping[str, Said] = {
    "inspct data": (
        r"^shards: there is no command 'inspct'\. Did you mean inspect\? python -m shards --help"
        r" lists all$"
    ),
    "inspect": (r"the following arguments are required: DIR\." + _HELP.format("inspect")),
    "inspect data --docs 1": (
        r"unknown flag --docs: did you mean --doc\?" + _HELP.format("inspect")
    ),
    "inspect data more words": (
        r"more words: belongs to no flag\. A value with spaces stands in quotes\. python -m shards"
        r" inspect --help lists every flag$"
    ),
    "inspect data --split test": (
        r"--split test: give one of train, validation\." + _HELP.format("inspect")
    ),
    "inspect data --doc 132": r"there is no train document 132: data has 132, counted from 0\.$",
    "inspect data --doc -1": r"there is no train document -1: data has 132, counted from 0\.$",
    "inspect data --source note": (
        r"data has no source 'note': did you mean notes\? Give one of docs, new, notes\.$"
    ),
    "inspect data@4": (
        r"there is no manifest number 4: this dataset has the numbers 1 to 3\. \(Those of before"
        r" it was overwritten or compacted are gone\.\)$"
    ),
    "inspect s3://me:secret@bucket/data": (
        r"^shards: The place s3://(?!.*secret).* was given with a password, but addresses are"
        r" written beside the dataset\. Leave it out and set FSSPEC_S3_USERNAME and"
        r" FSSPEC_S3_PASSWORD, or whatever the protocol's library reads\.$"
    ),
    "inspect 'https://host/data?token=secret'": (
        r"^shards: The place https://host/data(?!.*secret).* was given with a query \(\?\.\.\.\),"
        r" parameters \(;\.\.\.\) or a fragment \(#\.\.\.\), which may contain a signature, but"
        r" addresses are written beside the dataset\. Leave it out, or download the file first\.$"
    ),
    "inspect 'simplecache::s3://bucket/data'": (
        r"The place simplecache::s3://bucket/data is a chain of addresses; give the address of"
        r" plain files instead\.$"
    ),
    "inspect 's3://bucket/da*a'": (
        r"The place s3://bucket/da\*a has '\*' in its name, which libraries take for a wildcard:"
        r" choose another name\.$"
    ),
    "prune gone": r"gone does not exist: give a dataset's folder",
    "prune data": (
        r"data holds no dataset: it has no manifest\.json",
        holding("data/x"),
    ),
    "prune data@2": r"data@2 does not exist: give a dataset's folder",
    "compact data": (
        r"data/manifest\.json is a link: this dataset consists of links \(of a cache or an"
        r" annex\), which is fine for reading, but files put in their place would not be a dataset"
        r" with the others\. Copy it with what the links stand for, cp -rL data COPY, and write to"
        r" the copy\.$",
        linked,
    ),
    "place data --to s3://bucket/x": (
        r"--to: s3://bucket/x is a URL; give a path on this machine\." + _HELP.format("place")
    ),
    "place data --nodes 2,0 --list": (
        r"nodes of \[2, 0\] ranks: every node must have one or more$"
    ),
    "place data --nodes 2,1 --node 2 --list": r"there is no node 2: the nodes are 0 to 1$",
    "place data --scatters 0 --list": r"0 scatters: there must be 1 or more$",
    "remove data --id a-1": (
        r"say why: --reason TEXT, which stays in the manifest; or give --dry-run\.$"
    ),
    "remove data --id a-1 --reason x --until 5": (
        r"--until N says how far a run is looked at: give --run RUN as well\.$"
    ),
    "remove data@2 --id a-1 --reason x": (
        r"data@2: remove changes the dataset as it is now; leave @n out\.$"
    ),
    "remove data --reason x": (
        r"name the documents: --documents FILE, --id ID or --url PATTERN\.$"
    ),
    "remove data --id '' --reason x": r"name the documents: --documents FILE",
    "remove data --id a-99 --reason x": (
        r"data has no document a-99: give SHARD:ROW, the input's PATH:POSITION, an id or a URL as"
        r" the dataset has it \(python -m shards inspect DIR --doc 0 shows which columns there"
        r" are\); or --missing-ok, if there may be none\. What was dropped, and why, is in the"
        r" audit tables\.$"
    ),
    "remove data --documents names --reason x": (
        r"data has no document x-0, x-1, .*, x-19 and 1 more: give SHARD:ROW",
        together(dataset, holding("names", "".join(f"x-{i}\n" for i in range(21)))),
    ),
    "remove data --url '**' --reason x": (
        r"the pattern '\*\*' would match every URL: give one with a host or a path, as in"
        r" 'https://example\.org/blog/\*'\. \* stands for any characters, slashes included\.$"
    ),
    "remove data --documents gone --reason x": r"gone: No such file or directory: ",
    "remove data --id a-1 --reason x --run gone": (
        r"gone is not a file: name the one with a run's saved options\.$"
    ),
    "export data --to nunpy --output out": (
        r"--to nunpy: did you mean numpy\? Give one of llm\.c, datatrove, olmo, numpy\."
        + _HELP.format("export")
    ),
    "export data --to numpy": r"the following arguments are required: --output\.",
    "export data --to numpy --output data/out": (
        r"--output data/out lies in the dataset's own folder: name another one\.$"
    ),
    "export data --to numpy --output data": (
        r"--output data lies in the dataset's own folder: name another one\.$"
    ),
    "export data --to numpy --prefix x --output out": (
        r"--prefix x is for --to llm\.c only; --to numpy has no such thing: leave it out\.$"
    ),
    "export data --to llm.c --prefix a/b --output out": (
        r"--prefix begins the names of files: 'a/b' is no name of a file or folder\.$"
    ),
    "export data --to llm.c --prefix '..' --output out": (
        r"--prefix begins the names of files: '\.\.' is no path below a folder\.$"
    ),
    "export data --to llm.c --tokens-per-file 1073741312 --output out": (
        r"--tokens-per-file 1,073,741,312 makes files over 2 GiB, in which llm\.c's loader cannot"
        r" seek: give at most 1,073,741,311\.$"
    ),
    "megatron data:notes=0": (
        r"^shards: data:notes=0: Megatron takes weights above 0 only; leave it out\.$"
    ),
    "megatron s3://bucket/data": (
        r"s3://bucket/data is a URL, and training reads from a disk\. Place it there first: python"
        r" -m shards place s3://bucket/data --to DISK; then give DISK\.$"
    ),
    "push data words": (
        r"words names no dataset of the hub: write OWNER/NAME, where OWNER is a user or an"
        r" organization there\.$"
    ),
    "push empty me/words": (
        r"empty holds no dataset: it has no manifest\.json\.",
        holding("empty/a.txt"),
    ),
    "push s3://bucket/data me/words": (
        r"DIR: s3://bucket/data is a URL; give a path on this machine\."
    ),
    "push data me/words": (
        r"the text of removed documents \(1\) is still in the files of data, and a push would"
        r" publish it\. Take it out first: python -m shards compact data --erase$"
    ),
    "push data me/words --private": (
        r"data lacks 1 of its files, or has them cut short; the first is"
        r" g0001-\w+/docs/00001\.bin\.",
        together(first, _cut_short),
    ),
    "inspect hf:words": r"hf:words names no dataset of the hub: write OWNER/NAME",
    "view data --port 65536": (
        r"--port 65536: 127\.0\.0\.1 cannot be listened on there \(.*0-65535\.?\): give another"
        r" one, or 0 for any that is free\.$"
    ),
    "view data --run run.json": (
        r"run\.json holds no run: run\.mixes is missing\.$",
        together(dataset, holding_json("run.json", {"batches": []})),
    ),
}


def _console(name: str, words: str, says: str, scene: Scene = lambda _: None) -> Refusal:
    lines = (
        "import os, sys",
        "from importlib.metadata import entry_points",
        f"sys.argv = ['corpusmill', *{words.split()!r}]",
        "found = [*entry_points(group='console_scripts', name='corpusmill')][0].load()",
        "os._exit(found())",
    )
    return Refusal(
        name=f"corpusmill: {name}",
        python="\n".join(lines),
        says=rf"^corpusmill( completion)?: {says}",
        scene=scene,
    )


_CONSOLE = (
    _console(
        "a mistyped command",
        "wudoa",
        r"there is no command 'wudoa'\. Did you mean wudao\? corpusmill --help lists all$",
    ),
    _console("underscores", "cc_news", r"there is no command 'cc_news'\. Did you mean cc-news\? "),
    _console(
        "a module", "pipelines.pile", r"there is no command 'pipelines\.pile'\. Did you mean pile\?"
    ),
    _console(
        "run without a module",
        "run",
        r"name the module of your corpus, as python -m takes it: corpusmill run my_notes --input"
        r" …; it may lie in this folder$",
    ),
    _console(
        "run of no module",
        "run my_notes.x",
        r"there is no module 'my_notes\.x' in this folder, nor where Python looks for modules: ",
    ),
    _console(
        "run of a file",
        "run my_notes.py",
        r"there is no module 'my_notes\.py' .*; my_notes\.py is the module my_notes$",
        holding("my_notes.py"),
    ),
)

ROWS = (
    *(_row(command, said) for command, said in _REFUSED.items()),
    *(_row(command, said, before=_NODE) for command, said in _PLACED.items()),
    *(
        Accepted(
            name=f"{command}, which is taken", command=f"shards {command}", says=says, scene=scene
        )
        for command, (says, scene) in (
            (command, with_scene(said, dataset)) for command, said in _TAKEN.items()
        )
    ),
    *(
        Refusal(
            name=f"remove: a file {name}",
            command="shards remove data --documents names --reason x",
            says=says,
            scene=together(dataset, holding("names", content)),
        )
        for name, (content, says) in _OF_NAMES.items()
    ),
    *(
        Refusal(
            name=f"shards export: onto {name}",
            command="shards export data --to numpy --output out",
            says=says,
            scene=together(dataset, scene),
        )
        for name, (scene, says) in _ONTO.items()
    ),
    _row(
        "export data@3 --to numpy --source docs --output out",
        (
            r"--output out holds another export" + _OF + _FULL,
            together(dataset, exported, removed),
        ),
    ),
    *(
        _row(
            f"export data --to llm.c --prefix 'a{sign}b' --output out",
            rf"--prefix a\{sign}b has '\{sign}' in it, which llm\.c takes for a wildcard: leave it"
            rf" out\.$",
        )
        for sign in "*["
    ),
    Accepted(
        name="place: an empty folder is checked",
        command="shards place data --check --to disk",
        scene=dataset,
        code=1,
        says=r"disk/vocabulary-\w{8}\.arrow is missing \([\d,]+ bytes expected\).* disk: 29"
        r" problems$",
        writes=(),
    ),
    *_CONSOLE,
)
