"""Options that decide a training run's samples, given to `trace` or in Python."""

from collections.abc import Mapping
from typing import Any

from tests.refusals.refusal import Accepted, Refusal
from tests.refusals.setups import Setup, all_of, with_file
from tests.refusals.setups_shards import another, dataset, first, with_json

_SIZE = "--batch-size 4 --length 64"
_TRACE = f"shards trace --step 0 {_SIZE}"

_BY_FLAGS = (
    "--document x --data data",
    "",
    "--data data --batch-size 0",
    "--data data --batch-size 4 -1:9",
    "--data data --batch-size 5:4",
    "--data data --batch-size 4 9:8 9:2",
    "--data data --objective bert",
    "--data data --length 0 --objective causal",
    "--data data --length 64 --slack 32",
    "--data data --scatters 0",
    "--data data:note",
    "--data data data:notes",
    "--data data=x",
    "--data data:docs=1 data:notes",
    "--data data:docs=1 data:notes=-1",
    "--data data:docs=nan",
    "--data data:docs=200000 data:notes=1",
    "--data data --data-from 9",
    "--data data --data-from 0 data",
    "--data data --max-epochs data=2",
    "--data data --steps 9 --max-epochs data=x",
    "--data data:docs --steps 9 --max-epochs data:notes=2",
    "--data data:docs --steps 999 --max-epochs data=2",
)
_WITH = {
    "--data disk --scatters 3": another,
}
_IN_ALL = (
    "--data data --batch-size 4",
    "--step 0",
    "--step 0 run.json",
    f"--data data {_SIZE} --document https://a.example/99",
)
_DRAWN: Mapping[str, Setup] = {
    "--data data --batch-size 1 --length 1 --objective causal": first,
    "--data data --length 64 --slack 31": first,
    "--data disk --scatters 4": another,
    "--data disk --scatters 5": another,
    "--data data:docs=65535 data:notes=1": first,
    "--data data:docs=1 data:notes=0": first,
    "--data data --data-from 1 data:docs": first,
}
"""Flags with a value at its bound, which are accepted, and the setup."""

_RUN: dict[str, Any] = {
    "mixes": [{"start": 0, "data": ["data"]}],
    "batches": [{"step": 0, "size": 4}],
    "length": 64,
    "steps": 40,
}
_SAVED = {
    "a key too many": {"colour": 1},
    "no batch": {"batches": []},
    "a mix that begins late": {"mixes": [{"start": 3, "data": ["data"]}]},
    "an empty batch": {"batches": [{"step": 0, "size": 0}]},
}
"""Faults in the saved options of a run, by row name."""

_PREPARED = """
import shards
from shards import BatchSize, Blend, SamplingPlan, Sampler
d = shards.Dataset.open("data")
s = shards.streams_of(d)
w = shards.causal_windows(64)
m, b = (Blend(start=0, data=("data",)),), (BatchSize(step=0, size=4),)


def sampler(streams=s, **more):
    return Sampler(streams, **{"seed": 0, "num_scatters": 1, "window": w, **more})


x = sampler()
"""
_PYTHON = (
    "sampler([])",
    "sampler([s[0], s[0]])",
    "sampler(epoch_caps={'x': 2}, end=5)",
    "sampler(seed=1).load_state_dict(x.state_dict(9))",
    "sampler(num_scatters=2).load_state_dict(x.state_dict(9))",
    "sampler(window=shards.causal_windows(65)).load_state_dict(x.state_dict(9))",
    "sampler(s[:1]).load_state_dict(x.state_dict(9))",
    "x.load_state_dict({**x.state_dict(9), 'version': 2})",
    "x.load_state_dict({**x.state_dict(9), 'shards': {}})",
    "SamplingPlan(mixes=(), batches=b)",
    "shards.switch_version(shards.resolve_versions(SamplingPlan(mixes=m, batches=b)), 8, "
    "numbers={'data': 9})",
    "d.vocabulary.decode([384])",
)
_WRONG = (
    "sampler(epoch_caps={s[0].name: 2})",
    "x.draw([3, -1])",
    "shards.causal_windows(0)",
    "shards.glm_windows(64, slack=32)",
    "shards.SequentialSampler(s, window=w, max_windows=5).draw([-1, 0])",
    "shards.SequentialSampler(s, window=w, max_windows=5).draw([0, 5])",
)
"""Lines of Python that raise an error that is not a UserError."""

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
    "write([[1, 2]])": "",
    "write(kind='<i4')": "",
    "write(order=pa.array([None, 1], pa.uint64()))": "",
    "write(prompt_tokens=pa.array([0, 0]))": (
        r"^ValueError: documents need a column 'prompt_tokens' of int32: tokens: int32"
        r" prompt_tokens: int64$"
    ),
}
"""Lines of Python, and the output before the message."""


def _taken(command: str, message: str, setup: Setup) -> Accepted:
    return Accepted(
        name=f"{command}, which is taken",
        command=f"shards {command}",
        message=message,
        setup=setup,
        may_write=(),
    )


ROWS = (
    *(
        Refusal(name=f"trace {flags}", command=f"{_TRACE} {flags}", setup=setup)
        for flags, setup in {**dict.fromkeys(_BY_FLAGS, first), **_WITH}.items()
    ),
    *(
        Refusal(name=f"trace alone {flags}", command=f"shards trace {flags}", setup=dataset)
        for flags in _IN_ALL
    ),
    *(
        _taken(f"trace --step 0 {_SIZE} {flags}", r"^position 0 epoch 0 ", setup)
        for flags, setup in _DRAWN.items()
    ),
    *(
        Refusal(
            name=f"trace: a saved run with {name}",
            command="shards trace run.json --step 0",
            setup=all_of(first, with_json("run.json", {**_RUN, **changes})),
        )
        for name, changes in _SAVED.items()
    ),
    Refusal(
        name="trace: a file of a run that is no JSON",
        command="shards trace run.json --step 0",
        setup=with_file("run.json", "{"),
    ),
    _taken(
        f"trace --data data {_SIZE} --document a-3 --until 50",
        r"id=a-3 .* removed: training skips this document$",
        dataset,
    ),
    *(
        Refusal(
            name=f"python: {line}",
            python=_PREPARED + line,
            setup=first,
            code=code,
        )
        for code, part in ((2, _PYTHON), (1, _WRONG))
        for line in part
    ),
    *(
        Refusal(
            name=f"python: {line}",
            python=_WRITING + line,
            output_before=output_before,
            code=1,
            may_write=("g", "g/*"),
        )
        for line, output_before in _WRITTEN.items()
    ),
    Accepted(name="python: what is right is written", python=f"{_WRITING}write()", message="^$"),
)
