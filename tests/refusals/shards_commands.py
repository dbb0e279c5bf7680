"""Command lines of `python -m shards` and of the console script that are refused."""

from pathlib import Path

from tests.refusals.refusal import Accepted, Refusal
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


def _row(
    command: str, name: str, says: str, scene: Scene = dataset, *, before: str = ""
) -> Refusal:
    return Refusal(
        name=f"{command.split(maxsplit=1)[0]}: {name}",
        command=f"shards {command}",
        says=says,
        scene=scene,
        before=before,
    )


def _well(command: str, name: str, says: str, scene: Scene = dataset) -> Accepted:
    return Accepted(
        name=f"{command.split(maxsplit=1)[0]}: {name}",
        command=f"shards {command}",
        says=says,
        scene=scene,
    )


_INSPECT = (
    _row(
        "inspct data",
        "a mistyped command",
        r"^shards: there is no command 'inspct'\. Did you mean inspect\? python -m shards --help "
        r"lists all$",
    ),
    _row(
        "inspect",
        "no dataset",
        r"the following arguments are required: DIR\." + _HELP.format("inspect"),
    ),
    _row(
        "inspect data --docs 1",
        "a mistyped flag",
        r"unknown flag --docs: did you mean --doc\?" + _HELP.format("inspect"),
    ),
    _row(
        "inspect data --docs 1 --sorce x --qqqq",
        "three unknown flags",
        r"unknown flags: --docs: did you mean --doc\? --sorce: did you mean --source\? --qqqq "
        r"python -m "
        r"shards inspect --help lists every flag$",
    ),
    _row(
        "inspect data more words",
        "words that belong to no flag",
        r"more words: belongs to no flag\. A value with spaces stands in quotes\. python -m shards "
        r"inspect --help lists every flag$",
    ),
    _row(
        "inspect data --doc x",
        "a document that is no number",
        r"--doc: 'x' is not a whole number\.",
    ),
    _row(
        "inspect data --doc 5 --sourc docs",
        "a flag cut short",
        r"unknown flag --sourc: did you mean --source\?",
    ),
    _row(
        "inspect data --doc",
        "a flag without its value",
        r"--doc: expected one argument\." + _HELP.format("inspect"),
    ),
    _row(
        "inspect data --split test",
        "another split",
        r"--split test: give one of train, validation\." + _HELP.format("inspect"),
    ),
    _row(
        "inspect data --split trian",
        "a mistyped split",
        r"--split trian: did you mean train\? Give one of train, validation\.",
    ),
    _row(
        "inspect data --doc 132",
        "a document after the last",
        r"there is no train document 132: data has 132, counted from 0\.$",
    ),
    _well("inspect data --doc 131", "the last document", r"document 131 of 132 \(train\)"),
    _row(
        "inspect data --doc -1",
        "a document before the first",
        r"there is no train document -1: data has 132, counted from 0\.$",
    ),
    _row(
        "inspect data --doc 2 --source new --split validation",
        "a held-out document after the last of its source",
        r"there is no validation document 2: data has 2, counted from 0\.$",
    ),
    _well(
        "inspect data --doc 1 --source new --split validation",
        "the last held-out document of a source",
        r"document 1 of 2 \(validation\)",
    ),
    _row(
        "inspect data --source note",
        "a mistyped source",
        r"data has no source 'note': did you mean notes\? Give one of docs, new, notes\.$",
    ),
    _row(
        "inspect data --source qqqq",
        "a source that is not there",
        r"data has no source 'qqqq': give one of docs, new, notes\.$",
    ),
    _row(
        "inspect data@4",
        "a number after the last",
        r"there is no manifest number 4: this dataset has the numbers 1 to 3\. \(Those of before "
        r"it "
        r"was overwritten or compacted are gone\.\)$",
    ),
    _row(
        "inspect data@0",
        "a number before the first",
        r"there is no manifest number 0: this dataset",
    ),
    _well("inspect data@1", "the first number", r"data: text, manifest 1 "),
    _well("inspect data@3", "the last number", r"data: text, manifest 3 "),
    _row("stats gone", "no folder", r"gone does not exist: give a dataset's folder"),
    _row(
        "verify gone@3", "no folder, at a number", r"gone does not exist: give a dataset's folder"
    ),
    _row(
        "inspect s3://me:secret@bucket/data",
        "an address with a password",
        r"^shards: The place s3://(?!.*secret).* was given with a password, but addresses are "
        r"written "
        r"beside the dataset\. Leave it out and set FSSPEC_S3_USERNAME and FSSPEC_S3_PASSWORD, or "
        r"whatever the protocol's library reads\.$",
    ),
    _row(
        "inspect 'https://host/data?token=secret'",
        "an address with a query",
        r"^shards: The place https://host/data(?!.*secret).* was given with a query \(\?\.\.\.\), "
        r"parameters \(;\.\.\.\) or a fragment \(#\.\.\.\), which may contain a signature, but "
        r"addresses are written beside the dataset\. Leave it out, or download the file first\.$",
    ),
    _row(
        "inspect 'simplecache::s3://bucket/data'",
        "a chain of addresses",
        r"The place simplecache::s3://bucket/data is a chain of addresses; give the address of "
        r"plain "
        r"files instead\.$",
    ),
    _row(
        "inspect 's3://bucket/da*a'",
        "an address with a wildcard",
        r"The place s3://bucket/da\*a has '\*' in its name, which libraries take for a wildcard: "
        r"choose "
        r"another name\.$",
    ),
    _row(
        "inspect 's3://bucket/d[a'",
        "an address with a bracket",
        r"has '\[' in its name, which libraries take for a wildcard",
    ),
)

_PRUNE = (
    _row("prune gone", "no folder", r"gone does not exist: give a dataset's folder"),
    _row(
        "prune data",
        "no dataset",
        r"data holds no dataset: it has no manifest\.json",
        holding("data/x"),
    ),
    _row("prune data@2", "a number", r"data@2 does not exist: give a dataset's folder"),
    _well("prune data --dry-run", "nothing to delete", r"^0 bytes would be freed$"),
)

_COMPACT = (
    _row("compact gone", "no folder", r"gone does not exist: give a dataset's folder"),
    _row(
        "compact data",
        "a dataset of links",
        r"data/manifest\.json is a link: this dataset consists of links \(of a cache or an "
        r"annex\), "
        r"which is fine for reading, but files put in their place would not be a dataset with the "
        r"others\. Copy it with what the links stand for, cp -rL data COPY, and write to the "
        r"copy\.$",
        linked,
    ),
    _well("compact data", "all generations", r"2 generations are now g0004-\w{8}; "),
)

_NODE = r"^node 0 of 1: the whole corpus$"
_PLACE = (
    _row(
        "place data",
        "nowhere",
        r"say where to: --to DISK, a folder on the node's own disk; or --list\.$",
        before=_NODE,
    ),
    *(
        _row(
            f"place data --to {to}",
            name,
            rf"--to {to} is the dataset's own folder, or lies in it: name a folder on the node's "
            r"own disk\.$",
            before=_NODE,
        )
        for to, name in (("data/disk", "into the dataset"), ("data", "onto the dataset"))
    ),
    _row(
        "place data --to disk",
        "onto another dataset",
        r"--to disk holds text, manifest \d: another dataset or build than data, or newer than its "
        r"manifest 3\. Name an empty folder, or delete that one first\.$",
        together(dataset, another),
        before=_NODE,
    ),
    _row(
        "place data@2 --to disk",
        "onto a newer one",
        r"--to disk holds text, manifest 3: .* or newer than its manifest 2\.",
        together(dataset, placed),
        before=_NODE,
    ),
    _well(
        "place data --to disk",
        "onto itself again",
        r"0 bytes copied to disk",
        together(dataset, placed),
    ),
    _row(
        "place data --to s3://bucket/x",
        "to a URL",
        r"--to: s3://bucket/x is a URL; give a path on "
        r"this machine\." + _HELP.format("place"),
    ),
    _row(
        "place data --nodes 2,0 --list",
        "a node of no rank",
        r"nodes of \[2, 0\] ranks: every node "
        r"must have one or more$",
    ),
    _row(
        "place data --nodes 2,1 --node 2 --list",
        "a node after the last",
        r"there is no node 2: the nodes are 0 to 1$",
    ),
    _well(
        "place data --nodes 2,1 --node 1 --list", "the last node", r"^node 1 of 2: the whole corpus"
    ),
    _row(
        "place data --nodes 2,,1 --list",
        "nodes that are no numbers",
        r"--nodes: '' is not a whole "
        r"number from 0 on",
    ),
    _row(
        "place data --node -1 --list",
        "a node below 0",
        r"--node: '-1' is not a whole number from 0",
    ),
    _row("place data --scatters 0 --list", "no scatter", r"0 scatters: there must be 1 or more$"),
    _well(
        "place data --scatters 2 --nodes 1,1 --node 1 --list", "a scatter each", r"scatters 1 of 2"
    ),
    _row("place data --list --check", "two modes", r"--check: not allowed with argument --list\."),
    Accepted(
        name="place: an empty folder is checked",
        command="shards place data --check --to disk",
        scene=dataset,
        code=1,
        says=r"disk/vocabulary-\w{8}\.arrow is missing \([\d,]+ bytes expected\).* disk: 29 "
        r"problems$",
        writes=(),
    ),
)

_REMOVE = (
    _row(
        "remove data --id a-1",
        "without a reason",
        r"say why: --reason TEXT, which stays in the "
        r"manifest; or give --dry-run\.$",
    ),
    _row("remove data --id a-1 --reason ' '", "a reason of blanks", r"say why: --reason TEXT"),
    _row(
        "remove data --id a-1 --reason x --until 5",
        "steps without a run",
        r"--until N says how far a "
        r"run is looked at: give --run RUN as well\.$",
    ),
    _row(
        "remove data@2 --id a-1 --reason x",
        "an earlier number",
        r"data@2: remove changes the dataset "
        r"as it is now; leave @n out\.$",
    ),
    _row(
        "remove data --reason x",
        "no name",
        r"name the documents: --documents FILE, --id ID or --url "
        r"PATTERN\.$",
    ),
    _row(
        "remove data --id '' --reason x", "an empty name", r"name the documents: --documents FILE"
    ),
    _row(
        "remove data --id a-99 --reason x",
        "a name that no document has",
        r"data has no document a-99: give SHARD:ROW, the input's PATH:POSITION, an id or a URL as "
        r"the "
        r"dataset has it \(python -m shards inspect DIR --doc 0 shows which columns there are\); "
        r"or "
        r"--missing-ok, if there may be none\. What was dropped, and why, is in the audit "
        r"tables\.$",
    ),
    _row(
        "remove data --id a-1 --id a-99 --id a-98 --reason x",
        "some names that no document has",
        r"no document has the name a-99, a-98 \(2 of 3 names\), and nothing was removed\. Look for "
        r"mistakes \(--dry-run shows what is found\), or give --missing-ok to remove the others\.$",
    ),
    _row(
        "remove data --documents names --reason x",
        "21 names that no document has",
        r"data has no document x-0, x-1, .*, x-19 and 1 more: give SHARD:ROW",
        together(dataset, holding("names", "".join(f"x-{i}\n" for i in range(21)))),
    ),
    _row(
        "remove data --url '**' --reason x",
        "every url",
        r"the pattern '\*\*' would match every URL: "
        r"give one with a host or a path, as in 'https://example\.org/blog/\*'\. \* stands for any "
        r"characters, slashes included\.$",
    ),
    _row(
        "remove data --url 'https://A.example/*' --reason x",
        "a pattern that matches nothing",
        r"data has no document https://A\.example/\*: give SHARD:ROW",
    ),
    _row(
        "remove data --documents gone --reason x",
        "names in no file",
        r"gone: No such file or "
        r"directory: ",
    ),
    _row(
        "remove data --documents names --reason x",
        "a file without names",
        r"names has no names in "
        r"it: write one a line\.$",
        together(dataset, holding("names", " \n\n")),
    ),
    _row(
        "remove data --documents names --reason x",
        "names that are not UTF-8",
        r"names is not UTF-8 "
        r"\(.*0xff.*\): write one name a line\.$",
        together(dataset, holding("names", b"a\xff\n")),
    ),
    _row(
        "remove data --id a-1 --reason x --run gone",
        "a run that is not there",
        r"gone is not a file: "
        r"name the one with a run's saved options\.$",
    ),
    _row(
        "remove data --id a-1 --reason x --report s3://b/r",
        "a report at a URL",
        r"--report: "
        r"s3://b/r is a URL; give a path on this machine\.",
    ),
    _row(
        "remove gone --id a-1 --reason x",
        "no folder",
        r"gone does not exist: give a dataset's folder",
    ),
    _row(
        "remove data --id a-1 --reason x",
        "a dataset of links",
        r"data/manifest\.json is a link: this "
        r"dataset consists of links",
        linked,
    ),
    _well(
        "remove data --id a-99 --reason x --missing-ok",
        "a missing name that may be",
        r"nothing was "
        r"changed$",
    ),
    _well(
        "remove data --id a-1 --id a-99 --dry-run",
        "what would go",
        r"^data: 1 document of [\d,]+ "
        r"tokens in 1 shard would be removed.* 1 name without a document: a-99 .*nothing was "
        r"changed$",
    ),
    _well(
        "remove data --id a.jsonl:0 --dry-run",
        "a path and a position",
        r"^data: 1 document of .*"
        r"path=a\.jsonl position=0 id=a-0 ",
    ),
    _well(
        "remove data --url 'https://b.example/1*' --dry-run",
        "a pattern",
        r"^data: 11 documents of ",
    ),
    _well(
        "remove data --id a-3 --dry-run",
        "removed before",
        r"^data: 0 documents .*1 document had "
        r"been removed before",
    ),
)

_NEW = " --output out"
_EXPORT = (
    _row(
        "export data --to nunpy" + _NEW,
        "a mistyped format",
        r"--to nunpy: did you mean numpy\? Give "
        r"one of llm\.c, datatrove, olmo, numpy\." + _HELP.format("export"),
    ),
    _row(
        "export data --to numpy", "no folder", r"the following arguments are required: --output\."
    ),
    _row("export data" + _NEW, "no format", r"the following arguments are required: --to\."),
    _row(
        "export data --to numpy --output s3://b/x",
        "to a URL",
        r"--output: s3://b/x is a URL; give a "
        r"path on this machine\.",
    ),
    _row(
        "export data --to numpy --output data/out",
        "into the dataset",
        r"--output data/out lies in "
        r"the dataset's own folder: name another one\.$",
    ),
    _row(
        "export data --to numpy --output data",
        "onto the dataset",
        r"--output data lies in the "
        r"dataset's own folder: name another one\.$",
    ),
    _row(
        "export data --to numpy --source note" + _NEW,
        "a mistyped source",
        r"data has no source 'note': did you mean notes\? Give one of docs, new, notes\.$",
    ),
    _row(
        "export data --to numpy --prefix x" + _NEW,
        "a prefix for another format",
        r"--prefix x is for "
        r"--to llm\.c only; --to numpy has no such thing: leave it out\.$",
    ),
    _row(
        "export data --to olmo --tokens-per-file 5" + _NEW,
        "a size for another format",
        r"--tokens-per-file 5 is for --to llm\.c only; --to olmo has no such thing: leave "
        r"it",
    ),
    _row(
        "export data --to llm.c --prefix a/b" + _NEW,
        "a prefix with a slash",
        r"--prefix begins the "
        r"names of files: 'a/b' is no name of a file or folder\.$",
    ),
    _row(
        "export data --to llm.c --prefix '..'" + _NEW,
        "a prefix of dots",
        r"--prefix begins the names of files: '\.\.' is no path below a folder\.$",
    ),
    *(
        _row(
            f"export data --to llm.c --prefix 'a{sign}b'" + _NEW,
            f"a prefix with {sign}",
            rf"--prefix a\{sign}b has '\{sign}' in it, which llm\.c takes for a wildcard: leave "
            rf"it out\.$",
        )
        for sign in "*?[]"
    ),
    _row(
        "export data --to llm.c --tokens-per-file 1073741312" + _NEW,
        "files of more than 2 GiB",
        r"--tokens-per-file 1,073,741,312 makes files over 2 GiB, in which llm\.c's loader cannot "
        r"seek: "
        r"give at most 1,073,741,311\.$",
    ),
    _well(
        "export data --to llm.c --tokens-per-file 1073741311" + _NEW,
        "files of 2 GiB",
        r"bytes in out",
    ),
    _row(
        "export data --to llm.c --tokens-per-file 0" + _NEW,
        "no token a file",
        r"--tokens-per-file: 0 "
        r"is not at least 1\.",
    ),
    _row(
        "export data --to numpy" + _NEW,
        "a folder that holds something",
        r"--output out exists and "
        r"holds x, which no export has put there: name an empty folder\.$",
        together(dataset, holding("out/x")),
    ),
    _row(
        "export data --to numpy" + _NEW,
        "a folder that holds much",
        r"--output out exists and holds a "
        r"and 2 more, which no export has put there",
        together(dataset, holding("out/x"), holding("out/a"), holding("out/z")),
    ),
    _row(
        "export data --to numpy" + _NEW,
        "a file",
        r"--output out is a file: name an empty folder\.$",
        together(dataset, holding("out")),
    ),
)

_FULL = r"name an empty folder, or delete that one first\.$"
_OF = (
    r"\(of text, manifest 3, --to numpy, or with other flags or before more documents were "
    r"removed\): "
)
_AGAIN = (
    _row(
        "export data --to numpy" + _NEW,
        "onto one of other sources",
        r"--output out "
        r"holds another export " + _OF + _FULL,
        together(dataset, exported),
    ),
    _row(
        "export disk --to numpy" + _NEW,
        "onto one of another dataset",
        r"--output out holds another export " + _OF + _FULL,
        together(dataset, another, exported),
    ),
    _row(
        "export data@3 --to numpy --source docs" + _NEW,
        "onto one from before a removal",
        r"--output out holds another export " + _OF + _FULL,
        together(dataset, exported, removed),
    ),
    _row(
        "export data --to numpy" + _NEW,
        "onto one that does not say of what",
        r"out/export\.json does "
        r"not say what was exported \(export\.json was changed after it was written\): delete "
        r"out and "
        r"run the same command again, or name an empty folder\.$",
        together(dataset, exported, json_changed("out/export.json", "manifest", 9)),
    ),
    _well(
        "export data --to numpy --source docs" + _NEW,
        "onto itself",
        r" 6 were there",
        together(dataset, exported),
    ),
)

_MEGATRON = (
    _row(
        "megatron data",
        "removed documents",
        r"1 documents are removed from data, and Megatron would "
        r"train on them: it reads whole shards\. Give python -m shards compact data --erase "
        r"first\.$",
    ),
    _row(
        "megatron data:docs=2",
        "removed documents of a source",
        r"1 documents are removed from "
        r"data:docs=2, and Megatron",
    ),
    _well("megatron data:notes", "a source with all its documents", r"^--train-data-path \d+ /"),
    _row(
        "megatron data:note",
        "a mistyped source",
        r"data has no source 'note': did you mean notes\? "
        r"Give one of docs, new, notes\.$",
    ),
    _row(
        "megatron data:notes=0",
        "a weight of 0",
        r"^shards: data:notes=0: Megatron takes weights "
        r"above 0 only; leave it out\.$",
    ),
    _row("megatron data:notes=-1", "a weight below 0", r"Megatron takes weights above 0 only"),
    _row("megatron data:notes=inf", "an infinite weight", r"Megatron takes weights above 0 only"),
    _row(
        "megatron data:notes=x",
        "a weight that is none",
        r"^shards: data:notes=x: 'x' is not a number; "
        r"write DIR=0\.3\.$",
    ),
    _row(
        "megatron data:notes=2 data:new",
        "one weight of two",
        r"^shards: data:new has no weight, and "
        r"other data have one: give all of them one \(DIR=0\.3 DIR:SOURCE=2\), or none, so that "
        r"every "
        r"window weighs the same\.$",
    ),
    _row("megatron gone", "no folder", r"gone does not exist: give a dataset's folder"),
    _row(
        "megatron s3://bucket/data",
        "a URL",
        r"s3://bucket/data is a URL, and training reads from a "
        r"disk\. Place it there first: python -m shards place s3://bucket/data --to DISK; then "
        r"give "
        r"DISK\.$",
    ),
    _row("megatron data --output s3://b/x", "a list at a URL", r"--output: s3://b/x is a URL"),
)


def _cut_short(folder: Path) -> None:
    shard = next((folder / "data").glob("g*/docs/00001.bin"))
    shard.write_bytes(shard.read_bytes()[:-2])


_PUSH = (
    _row(
        "push data words",
        "a name without its owner",
        r"words names no dataset of the hub: write OWNER/NAME, where OWNER is a user or an "
        r"organization there\.$",
    ),
    _row("push gone me/words", "no folder", r"gone does not exist: give a dataset's folder"),
    _row(
        "push empty me/words",
        "a folder without a dataset",
        r"empty holds no dataset: it has no manifest\.json\.",
        holding("empty/a.txt"),
    ),
    _row(
        "push s3://bucket/data me/words",
        "a dataset at a URL",
        r"DIR: s3://bucket/data is a URL; give a path on this machine\.",
    ),
    _row(
        "push data me/words",
        "text that was removed",
        r"the text of removed documents \(1\) is still in the files of data, and a push would "
        r"publish it\. Take it out first: python -m shards compact data --erase$",
    ),
    _row(
        "push data me/words --private",
        "a file that is cut short",
        r"data lacks 1 of its files, or has them cut short; the first is "
        r"g0001-\w+/docs/00001\.bin\.",
        together(first, _cut_short),
    ),
    _row(
        "inspect hf:words",
        "a name on the hub without its owner",
        r"hf:words names no dataset of the hub: write OWNER/NAME",
    ),
)
_VIEW = (
    _row(
        "view data --port 65536",
        "a port after the last",
        r"--port 65536: 127\.0\.0\.1 cannot be listened on there \(.*0-65535\.?\): give another "
        r"one, or 0 for any that is free\.$",
    ),
    _row(
        "view data --port x", "a port that is none", r"--port: 'x' is not a whole number from 0 on"
    ),
    _row("view gone", "no folder", r"gone does not exist: give a dataset's folder"),
    _row(
        "view data --run gone",
        "a run that is not there",
        r"gone is not a file: name the one with a "
        r"run's saved options\.$",
    ),
    _row(
        "view data --run run.json",
        "a run that is none",
        r"run\.json holds no run: run\.mixes is missing\.$",
        together(dataset, holding_json("run.json", {"batches": []})),
    ),
)


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
        r"there is no command 'wudoa'\. Did you mean wudao\? "
        r"corpusmill --help lists all$",
    ),
    _console("underscores", "cc_news", r"there is no command 'cc_news'\. Did you mean cc-news\? "),
    _console(
        "a module", "pipelines.pile", r"there is no command 'pipelines\.pile'\. Did you mean pile\?"
    ),
    _console(
        "another word", "xyzzy", r"there is no command 'xyzzy'\. corpusmill --help lists all$"
    ),
    _console(
        "run without a module",
        "run",
        r"name the module of your corpus, as python -m takes it: "
        r"corpusmill run my_notes --input …; it may lie in this folder$",
    ),
    _console("run with a flag first", "run --input x", r"name the module of your corpus"),
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
    _console(
        "another shell",
        "completion powershell",
        r"bash\|zsh\|fish\|tcsh powershell: give one of bash, zsh, fish, tcsh\. corpusmill "
        r"completion "
        r"--help lists every flag$",
    ),
)

ROWS = (
    *_INSPECT,
    *_PRUNE,
    *_COMPACT,
    *_PLACE,
    *_REMOVE,
    *_EXPORT,
    *_AGAIN,
    *_MEGATRON,
    *_PUSH,
    *_VIEW,
    *_CONSOLE,
)
