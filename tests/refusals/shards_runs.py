"""What decides the samples of a run: data, weights, windows, scatters; by trace and Python."""

from collections.abc import Mapping
from typing import Any

from tests.refusals.refusal import Accepted, Refusal, Said, with_scene
from tests.refusals.scenes import Scene, holding, together
from tests.refusals.scenes_shards import another, dataset, first, holding_json

_SIZE = "--batch-size 4 --length 64"
_TRACE = f"shards trace --step 0 {_SIZE}"

_BY_FLAGS: Mapping[str, Said] = {
    "--document x --data data": r"--document: not allowed with argument --step\.",
    "": r"give --data, or the file of a run's options\.$",
    "--data data --batch-size 0": r"a batch has at least one sample, not 0\.$",
    "--data data --batch-size 4 -1:9": (
        r"-1:9: belongs to no flag\. A value with spaces stands in quotes\. python -m shards trace"
        r" --help"
    ),
    "--data data --batch-size 5:4": r"the batch sizes of a run begin at step 0, not at \[5\]\.$",
    "--data data --batch-size 4 9:8 5:2": (
        r"the batch sizes of a run ascend by step, these begin at \[0, 9, 5\]\.$"
    ),
    "--data data --batch-size 4 9:8 9:2": r"these begin at \[0, 9, 9\]\.$",
    "--data data --objective bert": r"the objective 'bert': give one of glm, causal\.$",
    "--data data --length 0 --objective causal": (
        r"windows of 0 tokens cannot have a slack of 0: the length must be at least 1, the slack"
        r" between 0 and half the length\.$"
    ),
    "--data data --length 64 --slack 32": (
        r"windows of 63 tokens cannot have a slack of 32: the length must be at least 1, the slack"
        r" between 0 and half the length\.$"
    ),
    "--data data --scatters 0": r"0 scatters: there must be 1 or more$",
    "--data disk --scatters 3": (
        r"3 scatters do not fit: stream \w{64}/docs has 4 shards, and every scatter must get the"
        r" same number\. Nearby numbers of scatters that fit: 1, 2, 4\.$",
        another,
    ),
    "--data data:note": (
        r"data has no source 'note': did you mean notes\? Give one of docs, notes\.$"
    ),
    "--data s3://bucket/data": (
        r"s3://bucket/data is a URL, and training reads from a disk\. Place it there first: python"
        r" -m shards place s3://bucket/data --to DISK; then give DISK\.$"
    ),
    "--data data data:notes": r"data:notes: its stream \w{64}/notes is given twice\.$",
    "--data data=x": r"data=x: 'x' is not a number; write DIR=0\.3\.$",
    "--data data:docs=1 data:notes": (
        r"data:notes has no weight, and other data have one: give all of them one \(DIR=0\.3"
        r" DIR:SOURCE=2\), or none, so that every window weighs the same\.$"
    ),
    "--data data:docs=1 data:notes=-1": (
        r"weights must be 0 or more, and at least one more than 0; these are \[1\.0, -1\.0\]$"
    ),
    "--data data:docs=nan": r"these are \[nan\]$",
    "--data data:docs=200000 data:notes=1": (
        r"weight 2 of 2 is 5e-06 of all weights; the smallest share that can be drawn is 1\.5e-05"
        r" \(1 in 65,536\)\. Increase it, or set it to 0 to leave the stream out\.$"
    ),
    "--data data --data-from 9": r"no data from position 9 on: name a dataset \(--data DIR\)\.$",
    "--data data --data-from 0 data": (
        r"the mixes of a run ascend by position, these begin at \[0, 0\]\.$"
    ),
    "--data data --max-epochs data=2": r"a cap on epochs needs the run's number of steps\.$",
    "--data data --steps 9 --max-epochs data=x": (
        r"--max-epochs data=x: write DIR=4 or DIR:SOURCE=1\.5\.$"
    ),
    "--data data:docs --steps 9 --max-epochs data:notes=2": (
        r"a cap on epochs is given for data:notes, which this run does not read: name data of the"
        r" run, as DIR or DIR:SOURCE\.$"
    ),
    "--data data:docs --steps 999 --max-epochs data=2": (
        r"stream \w{64}/docs would be seen 1\d\.\d+ times by position 3,996, its cap is 2\. End at"
        r" position (4\d\d), the last at which all caps hold, lower its weight, or raise its"
        r" cap\.$"
    ),
}
_IN_ALL: Mapping[str, str] = {
    "--data data --batch-size 4": (
        r"one of the arguments --step --document is required\. python -m shards trace --help lists"
        r" every flag$"
    ),
    "--step 0": r"give --data and --batch-size, or the file of a run's options\.$",
    "--step 0 --data data": r"give --batch-size, or the file of a run's options\.$",
    "--step 0 run.json": r"run\.json is not a file: name the one with a run's saved options\.$",
    f"--data data {_SIZE} --document https://a.example/99": (
        r"there is no document https://a\.example/99 in the data of this run: give SHARD:ROW, the"
        r" input's PATH:POSITION, an id or a URL\. What was dropped, and why, is in the audit"
        r" tables\.$"
    ),
}
_DRAWN: Mapping[str, Scene] = {
    "--data data --batch-size 1": first,
    "--data data --length 1 --objective causal": first,
    "--data data --length 64 --slack 31": first,
    "--data disk --scatters 4": another,
    "--data disk --scatters 5": another,
    "--data data:docs=65535 data:notes=1": first,
    "--data data:docs=1 data:notes=0": first,
    "--data data --data-from 1 data:docs": first,
}
"""At bounds, on the side that is taken."""

_RUN: dict[str, Any] = {
    "mixes": [{"start": 0, "data": ["data"]}],
    "batches": [{"step": 0, "size": 4}],
    "length": 64,
    "steps": 40,
}
_SAVED: Mapping[str, tuple[str, dict[str, Any]]] = {
    "a key too many": (r"run\.colour is not known\.$", {"colour": 1}),
    "mixes that are none": (r"run\.mixes is \{\}, not of type list\.$", {"mixes": {}}),
    "no batch": (r"the batch sizes of a run begin at step 0, not at \[\]\.$", {"batches": []}),
    "a mix without data": (r"run\.mixes\[0\]\.data is missing\.$", {"mixes": [{"start": 0}]}),
    "a mix that begins late": (
        r"the mixes of a run begin at position 0, not at \[3\]\.$",
        {"mixes": [{"start": 3, "data": ["data"]}]},
    ),
    "an empty batch": (
        r"a batch has at least one sample, not 0\.$",
        {"batches": [{"step": 0, "size": 0}]},
    ),
    "steps as text": (r"run\.steps is 'many', not of type .*int.*\.$", {"steps": "many"}),
}
"""What is wrong with the file of a run, what is said of it, and what the file has instead."""

_PREPARED = """
import shards
from shards import BatchSize, Mix, Run, Sampler
d = shards.Dataset.open("data")
s = shards.streams_of(d)
w = shards.causal_windows(64)
m, b = (Mix(start=0, data=("data",)),), (BatchSize(step=0, size=4),)


def sampler(streams=s, **more):
    return Sampler(streams, **{"seed": 0, "num_scatters": 1, "window": w, **more})


x = sampler()
"""
_CONTINUED = "UserError: this run cannot continue the saved one at position 9"
_PYTHON = {
    "sampler([])": r"UserError: there must be streams, and each must hold tokens; these are \[\]$",
    "sampler([s[0], s[0]])": (
        r"UserError: the same data are given twice: \w{64}/docs; give them once$"
    ),
    "sampler(epoch_caps={s[0].name: 2})": (
        r"ValueError: epoch_caps need `end`, the position after the last one$"
    ),
    "sampler(epoch_caps={'x': 2}, end=5)": (
        r"UserError: an epoch cap is given for x, which is no stream with text: "
    ),
    "x.draw([3, -1])": r"ValueError: position -1 is negative$",
    "sampler(seed=1).load_state_dict(x.state_dict(9))": (
        rf"{_CONTINUED}: seed was 0, now it is 1\. Set it as it was \(new data and new weights as"
        r" a further stage from 9 on\), or start a new run\.$"
    ),
    "sampler(num_scatters=2).load_state_dict(x.state_dict(9))": (
        rf"{_CONTINUED}: num_scatters was 1, now it is 2\."
    ),
    "sampler(window=shards.causal_windows(65)).load_state_dict(x.state_dict(9))": (
        rf"{_CONTINUED}: window was .*64.*, now it is .*65.*\."
    ),
    "sampler(s[:1]).load_state_dict(x.state_dict(9))": rf"{_CONTINUED}: stages was .*, now it is ",
    "x.load_state_dict({**x.state_dict(9), 'version': 2})": (
        rf"{_CONTINUED}: version was 2, now it is 1\."
    ),
    "x.load_state_dict({**x.state_dict(9), 'shards': {}})": (
        rf"{_CONTINUED}: shards was \{{\}}, now it is "
    ),
    "shards.causal_windows(0)": (
        r"ValueError: windows of 0 tokens cannot have a slack of 0: the length must be at least 1"
    ),
    "shards.glm_windows(64, slack=32)": r"ValueError: windows of 63 tokens cannot have a slack of",
    "Run(mixes=(), batches=b)": (
        r"UserError: the mixes of a run begin at position 0, not at \[\]\.$"
    ),
    "shards.switched(shards.pinned(Run(mixes=m, batches=b)), 8, numbers={'data': 9}, weight=1)": (
        r"UserError: there is no manifest number 9: this dataset has the numbers 1 to 1\."
    ),
    "d.vocabulary.decode([384])": (
        r"DamageError: token id 384 is outside the vocabulary of 384 ids\.$"
    ),
    "d.documents('notes')[38]": r"IndexError: there is no document 38: there are 38$",
    "d.documents('notes')[-1]": r"IndexError: there is no document -1: there are 38$",
    "shards.OnePass(s, window=w, at_most=5).draw([-1, 0])": (
        r"IndexError: positions -1 to 0: this pass has 5 windows$"
    ),
    "shards.OnePass(s, window=w, at_most=5).draw([0, 5])": (
        r"IndexError: positions 0 to 5: this pass has 5 windows$"
    ),
}

_WRITING = """
import numpy as np, pyarrow as pa, shards
from pathlib import Path


def write(tokens=((1, 2), (3,)), kind="<u2", **more):
    given = {
        "tokens": pa.array([2, 1], pa.int32()),
        "prompt_tokens": pa.array([0, 0], pa.int32()),
        "order": pa.array([1, 2], pa.uint64()),
        **more,
    }
    chunks = [np.array(each, kind) for each in tokens]
    shards.write_shard(
        Path("g/s/0"), pa.table(given), directory=Path(), dtype=np.dtype("<u2"), tokens=chunks
    )


"""
_WRITTEN = {
    "write([[1, 2]])": ("", r"^ValueError: 2 tokens were given, the documents have 3$"),
    "write(kind='<i4')": ("", r"^ValueError: a chunk of 1-d int32 tokens, not 1-d uint16$"),
    "write(order=pa.array([None, 1], pa.uint64()))": (
        "",
        r"^ValueError: documents have nulls in column 'order'$",
    ),
    "write(prompt_tokens=pa.array([0, 0]))": (
        r"^ValueError: documents need a column 'prompt_tokens' of int32: tokens: int32"
        r" prompt_tokens: int64$",
        r"^order: uint64$",
    ),
}
"""Lines, what is said before the last paragraph, and that."""


def _taken(command: str, says: str, scene: Scene) -> Accepted:
    return Accepted(
        name=f"{command}, which is taken",
        command=f"shards {command}",
        says=says,
        scene=scene,
        writes=(),
    )


ROWS = (
    *(
        Refusal(name=f"trace {flags}", command=f"{_TRACE} {flags}", says=says, scene=scene)
        for flags, (says, scene) in (
            (flags, with_scene(said, first)) for flags, said in _BY_FLAGS.items()
        )
    ),
    *(
        Refusal(
            name=f"trace alone {flags}", command=f"shards trace {flags}", says=says, scene=dataset
        )
        for flags, says in _IN_ALL.items()
    ),
    *(
        _taken(f"trace --step 0 {_SIZE} {flags}", r"^position 0 epoch 0 ", scene)
        for flags, scene in _DRAWN.items()
    ),
    *(
        Refusal(
            name=f"trace: a saved run with {name}",
            command="shards trace run.json --step 0",
            says=rf"run\.json holds no run: {says}",
            scene=together(first, holding_json("run.json", {**_RUN, **changes})),
        )
        for name, (says, changes) in _SAVED.items()
    ),
    Refusal(
        name="trace: a file of a run that is no JSON",
        command="shards trace run.json --step 0",
        scene=holding("run.json", "{"),
        says=r"run\.json holds no valid JSON \(",
    ),
    _taken(
        f"trace --data data {_SIZE} --document https://a.example/5",
        r"path=a\.jsonl .* id=a-5 url=https://a\.example/5 step \d+ ",
        dataset,
    ),
    _taken(
        f"trace --data data {_SIZE} --document a-3 --until 50",
        r"id=a-3 .* removed: it is no longer trained on$",
        dataset,
    ),
    _taken(
        "remove data --id a-5 --dry-run --run run.json",
        r"run\.json.*step",
        together(dataset, holding_json("run.json", _RUN)),
    ),
    *(
        Refusal(
            name=f"python: {line}",
            python=_PREPARED + line,
            says=f"^{says}",
            scene=first,
            code=1 if says.startswith(("ValueError", "IndexError")) else 2,
        )
        for line, says in _PYTHON.items()
    ),
    *(
        Refusal(
            name=f"python: {line}",
            python=_WRITING + line,
            before=before,
            says=says,
            code=1,
            writes=("g", "g/*"),
        )
        for line, (before, says) in _WRITTEN.items()
    ),
    Accepted(name="python: what is right is written", python=f"{_WRITING}write()", says="^$"),
)
