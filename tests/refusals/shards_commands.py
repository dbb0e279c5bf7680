"""Command lines of `python -m shards` and of the console script that are refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.refusals.refusal import Accepted, Refusal
from tests.refusals.scenes import Scene, holding, together
from tests.refusals.scenes_shards import (
    another,
    dataset,
    exported,
    first,
    holding_json,
    led_out,
    linked,
    placed,
    sealed,
)


def _row(command: str, scene: Scene = dataset, **more: Any) -> Refusal:
    return Refusal(name=command, command=f"shards {command}", scene=scene, **more)


_NODE = r"^node 0 of 1: the whole corpus$"
_SAID = {"compact": "", "remove": r"^data: 1 document of ", "place": _NODE}
"""Refusals of commands before they write."""


_OF_NAMES = {
    "without names": " \n\n",
    "not UTF-8": b"a\xff\n",
}
_ONTO = {
    "a folder that holds much": together(holding("out/x"), holding("out/a"), holding("out/z")),
    "a file": holding("out"),
    "an export of other sources": exported,
}
_PLACED = (
    "place data",
    "place data --to data/disk",
)
_PLACED_WITH = {
    "place data --to disk": together(dataset, another),
}
"""Refusals once the node has named its share."""

_TAKEN: Mapping[str, tuple[str, Scene]] = {
    "inspect data --doc 131": (r"document 131 of 132 \(train\)", dataset),
    "remove data --id a-99 --reason x --missing-ok": (r"nothing was changed$", dataset),
    "export data --to numpy --source docs --output out": (
        r" 6 were there",
        together(dataset, exported),
    ),
    # A cache of links is a dataset.
    "verify data": (r"MB/s: ok$", together(dataset, linked)),
    "place data --check": (r"no problems", together(dataset, linked)),
    "place data --to copy": (r"bytes copied to copy", together(dataset, linked)),
}
"""At bounds, on the side that is taken; more of it is in golden rows."""


def _link_out(path: str) -> Scene:
    """A link to a folder next to the dataset."""

    def scene(folder: Path) -> None:
        (folder / "away").mkdir()
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).symlink_to(folder / "away")

    return scene


_THROUGH_LINKS = (
    ("compact data", together(dataset, _link_out("data/.work"))),
    ("compact data", together(dataset, _link_out("data/.work/compact"))),
    ("remove data --id a-1 --reason x", together(first, _link_out("data/removals"))),
    ("place data --to disk", together(dataset, placed, led_out("disk/g0001-*"))),
    ("place data --to disk --check", together(dataset, placed, led_out("disk/g0001-*"))),
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
    "prune data": holding("data/x"),
    "compact data": together(dataset, linked),
    "remove data --documents names --reason x": together(
        dataset, holding("names", "".join(f"x-{i}\n" for i in range(21)))
    ),
    "megatron data disk": together(
        first, another, sealed("tokenizer.sha256", "0" * 64, data="disk")
    ),
    "megatron data=1 disk:docs=2": together(
        first, another, sealed("tokenizer.special.eos", 301, data="disk")
    ),
    "view data --run run.json": together(dataset, holding_json("run.json", {"batches": []})),
}


def _console(name: str, words: str, scene: Scene = lambda _: None) -> Refusal:
    lines = (
        "import os, sys",
        "from importlib.metadata import entry_points",
        f"sys.argv = ['corpusmill', *{words.split()!r}]",
        "found = [*entry_points(group='console_scripts', name='corpusmill')][0].load()",
        "os._exit(found())",
    )
    return Refusal(name=f"corpusmill: {name}", python="\n".join(lines), scene=scene)


_CONSOLE = (
    _console("a mistyped command", "wudoa"),
    _console("underscores", "cc_news"),
    _console("a module", "pipelines.pile"),
    _console("run without a module", "run"),
    _console("run of no module", "run my_notes.x"),
)

ROWS = (
    *(_row(command) for command in _REFUSED),
    *(_row(command, scene) for command, scene in _WITH.items()),
    *(_row(command, before=_NODE) for command in _PLACED),
    *(_row(command, scene, before=_NODE) for command, scene in _PLACED_WITH.items()),
    *(
        Accepted(
            name=f"{command}, which is taken", command=f"shards {command}", says=says, scene=scene
        )
        for command, (says, scene) in _TAKEN.items()
    ),
    *(
        Refusal(
            name=f"remove: a file {name}",
            command="shards remove data --documents names --reason x",
            scene=together(dataset, holding("names", content)),
        )
        for name, content in _OF_NAMES.items()
    ),
    *(
        Refusal(
            name=f"shards export: onto {name}",
            command="shards export data --to numpy --output out",
            scene=together(dataset, scene),
        )
        for name, scene in _ONTO.items()
    ),
    *(
        Refusal(
            name=f"{command}, through a link, {number}",
            command=f"shards {command}",
            scene=scene,
            before=_SAID[command.split()[0]],
            writes=("data/.lock", "disk/.lock", "disk/.placed"),
        )
        for number, (command, scene) in enumerate(_THROUGH_LINKS)
    ),
    *_CONSOLE,
)
