"""Command lines of `python -m shards`, and of the console script."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.refusals.refusal import Accepted, Refusal
from tests.refusals.setups import Setup, all_of, with_file
from tests.refusals.setups_shards import (
    all_links,
    another,
    as_link,
    dataset,
    exported,
    first,
    placed,
    with_json,
    with_manifest,
)


def _row(command: str, setup: Setup = dataset, **more: Any) -> Refusal:
    return Refusal(name=command, command=f"shards {command}", setup=setup, **more)


_NODE = r"^node 0 of 1: the whole corpus$"
_SAID = {"compact": "", "remove": r"^data: 1 document of ", "place": _NODE}
"""The output, up to the refusal, of commands that are refused before they write."""


_OF_NAMES = {
    "without names": " \n\n",
    "not UTF-8": b"a\xff\n",
}
_ONTO = {
    "a folder that holds much": all_of(with_file("out/x"), with_file("out/a"), with_file("out/z")),
    "a file": with_file("out"),
    "an export of other sources": exported,
}
_PLACED = (
    "place data",
    "place data --to data/disk",
)
_PLACED_WITH = {
    "place data --to disk": all_of(dataset, another),
}
"""Commands that are refused after they print the node's share."""

_TAKEN: Mapping[str, tuple[str, Setup]] = {
    "inspect data --doc 131": (r"document 131 of 132 \(train\)", dataset),
    "remove data --id a-99 --reason x --missing-ok": (r"nothing was changed$", dataset),
    "export data --to numpy --source docs --output out": (
        r" 6 already there",
        all_of(dataset, exported),
    ),
    # A dataset may consist of links, as in a cache.
    "verify data": (r"MB/s: ok$", all_of(dataset, all_links)),
    "place data --check": (r"no problems", all_of(dataset, all_links)),
    "place data --to copy": (r"bytes copied to copy", all_of(dataset, all_links)),
}
"""Commands with a value at its bound, which are accepted; golden rows contain more."""


def _link_out(path: str) -> Setup:
    """Return a setup that writes a link to a folder next to the dataset."""

    def setup(folder: Path) -> None:
        (folder / "away").mkdir()
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).symlink_to(folder / "away")

    return setup


_THROUGH_LINKS = (
    ("compact data", all_of(dataset, _link_out("data/.work"))),
    ("compact data", all_of(dataset, _link_out("data/.work/compact"))),
    ("remove data --id a-1 --reason x", all_of(first, _link_out("data/removals"))),
    ("place data --to disk", all_of(dataset, placed, as_link("disk/g0001-*"))),
    ("place data --to disk --check", all_of(dataset, placed, as_link("disk/g0001-*"))),
)

_REFUSED = (
    "inspct data",
    "inspect",
    "inspect data --docs 1",
    "inspect data --split test",
    "inspect data --doc 132",
    "inspect data --doc -1",
    "inspect data --source note",
    "inspect data@4",
    "inspect s3://me:secret@bucket/data",
    "inspect 'https://host/data?token=secret'",
    "inspect 'simplecache::s3://bucket/data'",
    "inspect 's3://bucket/da*a'",
    "prune data@2",
    "place data --to s3://bucket/x",
    "place data --nodes 2,0 --list",
    "place data --nodes 2,1 --node 2 --list",
    "place data --scatters 0 --list",
    "remove data --id a-1",
    "remove data@2 --id a-1 --reason x",
    "remove gone --id a-1 --reason x",
    "remove data --reason x",
    "remove data --id '' --reason x",
    "remove data --id a-99 --reason x",
    "remove data --url '**' --reason x",
    "remove data --documents gone --reason x",
    "export data --to nunpy --output out",
    "export data --to numpy --output data/out",
    "export data --to numpy --prefix x --output out",
    "export data --to llm.c --prefix a/b --output out",
    "export data --to llm.c --prefix 'a*b' --output out",
    "export data --to llm.c --tokens-per-file 1073741312 --output out",
    "megatron data:notes=0",
    "megatron s3://bucket/data",
    "inspect hf:words",
    "view data --port 65536",
)
_WITH = {
    "prune data": with_file("data/x"),
    "compact data": all_of(dataset, all_links),
    "remove data --documents names --reason x": all_of(
        dataset, with_file("names", "".join(f"x-{i}\n" for i in range(21)))
    ),
    "megatron data disk": all_of(
        first, another, with_manifest("tokenizer.sha256", "0" * 64, data="disk")
    ),
    "megatron data=1 disk:docs=2": all_of(
        first, another, with_manifest("tokenizer.special.eos", 301, data="disk")
    ),
    "view data --run run.json": all_of(dataset, with_json("run.json", {"batches": []})),
}


def _console(name: str, words: str, setup: Setup = lambda _: None) -> Refusal:
    lines = (
        "import os, sys",
        "from importlib.metadata import entry_points",
        f"sys.argv = ['corpusmill', *{words.split()!r}]",
        "found = [*entry_points(group='console_scripts', name='corpusmill')][0].load()",
        "os._exit(found())",
    )
    return Refusal(name=f"corpusmill: {name}", python="\n".join(lines), setup=setup)


_CONSOLE = (
    _console("a mistyped command", "wudoa"),
    _console("underscores", "cc_news"),
    _console("a module", "pipelines.pile"),
    _console("run without a module", "run"),
    _console("run of no module", "run my_notes.x"),
)

ROWS = (
    *(_row(command) for command in _REFUSED),
    *(_row(command, setup) for command, setup in _WITH.items()),
    *(_row(command, output_before=_NODE) for command in _PLACED),
    *(_row(command, setup, output_before=_NODE) for command, setup in _PLACED_WITH.items()),
    *(
        Accepted(
            name=f"{command}, which is taken",
            command=f"shards {command}",
            message=message,
            setup=setup,
        )
        for command, (message, setup) in _TAKEN.items()
    ),
    *(
        Refusal(
            name=f"remove: a file {name}",
            command="shards remove data --documents names --reason x",
            setup=all_of(dataset, with_file("names", content)),
        )
        for name, content in _OF_NAMES.items()
    ),
    *(
        Refusal(
            name=f"shards export: onto {name}",
            command="shards export data --to numpy --output out",
            setup=all_of(dataset, setup),
        )
        for name, setup in _ONTO.items()
    ),
    *(
        Refusal(
            name=f"{command}, through a link, {number}",
            command=f"shards {command}",
            setup=setup,
            output_before=_SAID[command.split()[0]],
            may_write=("data/.lock", "disk/.lock", "disk/.placed"),
        )
        for number, (command, setup) in enumerate(_THROUGH_LINKS)
    ),
    *_CONSOLE,
)
