"""What decides the samples of a run: data, weights, windows, scatters, caps; by trace and "
"Python."""

from typing import Any

from tests.refusals.refusal import Accepted, Refusal, nothing
from tests.refusals.scenes import Scene, holding, together
from tests.refusals.scenes_shards import another, dataset, first, holding_json

_HELP = r" python -m shards trace --help lists every flag$"
_SIZE = "--batch-size 4 --length 64"


def _row(flags: str, name: str, says: str, scene: Scene = first, *, rest: str = _SIZE) -> Refusal:
    return Refusal(
        name=f"trace: {name}",
        command=f"shards trace --step 0 {rest} {flags}",
        says=says,
        scene=scene,
    )


def _well(flags: str, name: str, scene: Scene = first, *, rest: str = _SIZE) -> Accepted:
    return Accepted(
        name=f"trace: {name}",
        command=f"shards trace --step 0 {rest} {flags}",
        says=r"^position 0 epoch 0 ",
        scene=scene,
        writes=(),
    )


_FLAGS = (
    Refusal(
        name="trace: no question",
        command="shards trace --data data --batch-size 4",
        says=r"one of the arguments --step --document is required\." + _HELP,
    ),
    _row(
        "--document x --data data",
        "two questions",
        r"--document: not allowed with argument --step\.",
    ),
    _row(
        "",
        "neither data nor a batch",
        r"give --data and --batch-size, or the file of a run's options\.$",
        rest="",
    ),
    _row(
        "--data data", "no batch", r"give --batch-size, or the file of a run's options\.$", rest=""
    ),
    _row("", "no data", r"give --data, or the file of a run's options\.$"),
    _row(
        "--data data --batch-size 0", "an empty batch", r"a batch has at least one sample, not 0\.$"
    ),
    _well("--data data --batch-size 1", "a batch of one"),
    _row(
        "--data data --batch-size 4 9:0",
        "a batch that ends up empty",
        r"at least one sample, not 0\.$",
    ),
    _row(
        "--data data --batch-size x",
        "a batch that is no number",
        r"--batch-size: 'x' is not a whole "
        r"number from 0 on, as in 300, 20k, 100M or 2G\.$",
    ),
    _row(
        "--data data --batch-size 4 x:9",
        "a step that is no number",
        r"--batch-size: 'x' is not a whole",
    ),
    _row(
        "--data data --batch-size 4 -1:9",
        "a step below 0",
        r"-1:9: belongs to no flag\. A value with spaces stands in quotes\. python -m shards "
        r"trace --help",
    ),
    _row(
        "--data data --batch-size 5:4",
        "batches that begin late",
        r"the batch sizes of a run begin at "
        r"step 0, not at \[5\]\.$",
    ),
    _row(
        "--data data --batch-size 4 9:8 5:2",
        "batches out of order",
        r"the batch sizes of a run ascend "
        r"by step, these begin at \[0, 9, 5\]\.$",
    ),
    _row(
        "--data data --batch-size 4 9:8 9:2",
        "batches of one step",
        r"these begin at \[0, 9, 9\]\.$",
    ),
    _row(
        "--data data --objective bert",
        "another objective",
        r"the objective 'bert': give one of glm, "
        r"causal\.$",
    ),
    _row(
        "--data data --objective casual",
        "a mistyped objective",
        r"the objective 'casual': did you mean "
        r"causal\? Give one of glm, causal\.$",
    ),
    _row(
        "--data data --length 0 --objective causal",
        "windows of nothing",
        r"windows of 0 tokens cannot "
        r"have a slack of 0: the length must be at least 1, the slack between 0 and half the "
        r"length\.$",
    ),
    _well("--data data --length 1 --objective causal", "windows of one token"),
    _row(
        "--data data --length 64 --slack 32",
        "too much slack",
        r"windows of 63 tokens cannot have a "
        r"slack of 32: the length must be at least 1, the slack between 0 and half the length\.$",
    ),
    _well("--data data --length 64 --slack 31", "the most slack"),
    _row(
        "--data data --length x",
        "a length that is no number",
        r"--length: 'x' is not a whole number",
    ),
    _row(
        "--data data --slack -1", "slack below 0", r"--slack: '-1' is not a whole number from 0 on"
    ),
    _row(
        "--data data --seed x",
        "a seed that is no number",
        r"--seed: 'x' is not a whole number\." + _HELP,
    ),
    _row(
        "--data data --step 1.5", "a step that is no whole number", r"--step: '1\.5' is not a whole"
    ),
    _row(
        "--data data --steps -5", "steps below 0", r"--steps: '-5' is not a whole number from 0 on"
    ),
    _row("--data data --scatters 0", "no scatter", r"0 scatters: there must be 1 or more$"),
    _row(
        "--data disk --scatters 3",
        "scatters that do not fit",
        r"3 scatters do not fit: stream "
        r"\w{64}/docs has 4 shards, and every scatter must get the same number\. Nearby numbers of "
        r"scatters that fit: 1, 2, 4\.$",
        another,
    ),
    _well("--data disk --scatters 4", "as many scatters as shards", another),
    _well("--data disk --scatters 2", "scatters that divide the shards", another),
    _well("--data disk --scatters 5", "more scatters than shards", another),
)

_DATA = (
    _row("--data gone", "no folder", r"gone does not exist: give a dataset's folder"),
    _row(
        "--data data:note",
        "a mistyped source",
        r"data has no source 'note': did you mean notes\? Give "
        r"one of docs, notes\.$",
    ),
    _row(
        "--data data@2",
        "a number after the last",
        r"there is no manifest number 2: this dataset has the "
        r"numbers 1 to 1\.",
    ),
    _row(
        "--data s3://bucket/data",
        "a URL",
        r"s3://bucket/data is a URL, and training reads from a disk\. "
        r"Place it there first: python -m shards place s3://bucket/data --to DISK; then give "
        r"DISK\.$",
    ),
    _row(
        "--data s3://me:secret@bucket/data",
        "a URL with a password",
        r"^shards: (?!.*secret)s3://.* is a "
        r"URL, and training reads from a disk",
    ),
    _row("--data data data", "data given twice", r"data: its stream \w{64}/docs is given twice\.$"),
    _row(
        "--data data data:notes",
        "a source given twice",
        r"data:notes: its stream \w{64}/notes is given "
        r"twice\.$",
    ),
    _row(
        "--data data=x", "a weight that is none", r"data=x: 'x' is not a number; write DIR=0\.3\.$"
    ),
    _row("--data data=", "an empty weight", r"data=: '' is not a number; write DIR=0\.3\.$"),
    _row(
        "--data data:docs=1 data:notes",
        "one weight of two",
        r"data:notes has no weight, and other data "
        r"have one: give all of them one \(DIR=0\.3 DIR:SOURCE=2\), or none, so that every window "
        r"weighs "
        r"the same\.$",
    ),
    _row(
        "--data data:docs=1 data:notes=-1",
        "a weight below 0",
        r"weights must be 0 or more, and at least "
        r"one more than 0; these are \[1\.0, -1\.0\]$",
    ),
    _row(
        "--data data:docs=0 data:notes=0",
        "weights of 0",
        r"at least one more than 0; these are \[0\.0, "
        r"0\.0\]$",
    ),
    _row("--data data:docs=nan", "a weight that is no number", r"these are \[nan\]$"),
    _row("--data data:docs=inf", "an infinite weight", r"these are \[inf\]$"),
    _row(
        "--data data:docs=200000 data:notes=1",
        "a share too small",
        r"weight 2 of 2 is 5e-06 of all "
        r"weights; the smallest share that can be drawn is 1\.5e-05 \(1 in 65,536\)\. Increase "
        r"it, or set "
        r"it to 0 to leave the stream out\.$",
    ),
    _well("--data data:docs=65535 data:notes=1", "the smallest share"),
    _well("--data data:docs=1 data:notes=0", "a stream that is left out"),
    _row("--data data --data-from 9 gone", "later data in no folder", r"gone does not exist"),
    _row(
        "--data data --data-from x data",
        "a position that is no number",
        r"--data-from: 'x' is not a "
        r"whole number from 0 on, as in 300, 20k, 100M or 2G\.$",
    ),
    _row(
        "--data data --data-from 9",
        "a position without data",
        r"no data from position 9 on: name a "
        r"dataset \(--data DIR\)\.$",
    ),
    _row(
        "--data data --data-from 0 data",
        "later data from the beginning",
        r"the mixes of a run ascend by "
        r"position, these begin at \[0, 0\]\.$",
    ),
    _row(
        "--data data --data-from 9 data --data-from 5 data",
        "positions out of order",
        r"the mixes of a "
        r"run ascend by position, these begin at \[0, 9, 5\]\.$",
    ),
    _well("--data data --data-from 1 data:docs", "later data"),
)

_CAPS = (
    _row(
        "--data data --max-epochs data=2",
        "a cap without steps",
        r"a cap on epochs needs the run's number "
        r"of steps\.$",
    ),
    _row(
        "--data data --steps 9 --max-epochs data",
        "a cap without a number",
        r"--max-epochs data: write "
        r"DIR=4 or DIR:SOURCE=1\.5\.$",
    ),
    _row(
        "--data data --steps 9 --max-epochs data=x",
        "a cap that is no number",
        r"--max-epochs data=x: "
        r"write DIR=4 or DIR:SOURCE=1\.5\.$",
    ),
    _row(
        "--data data:docs --steps 9 --max-epochs data:notes=2",
        "a cap on other data",
        r"a cap on epochs "
        r"is given for data:notes, which this run does not read: name data of the run, as DIR or "
        r"DIR:SOURCE\.$",
    ),
    _row(
        "--data data:docs --steps 999 --max-epochs data=2",
        "a cap that does not hold",
        r"stream "
        r"\w{64}/docs would be seen 1\d\.\d+ times by position 3,996, its cap is 2\. End at "
        r"position "
        r"(4\d\d), the last at which all caps hold, lower its weight, or raise its cap\.$",
    ),
    _row(
        "--data data:docs --steps 9 --max-epochs data=0",
        "a cap of 0",
        r"its cap is 0\. End at position "
        r"0, the last",
    ),
)

_RUN: dict[str, Any] = {
    "mixes": [{"start": 0, "data": ["data"]}],
    "batches": [{"step": 0, "size": 4}],
    "length": 64,
    "steps": 40,
}


def _saved(name: str, says: str, **changes: Any) -> Refusal:
    return Refusal(
        name=f"trace: a saved run with {name}",
        command="shards trace run.json --step 0",
        says=r"run\.json holds no run: " + says,
        scene=together(first, holding_json("run.json", {**_RUN, **changes})),
    )


_SAVED = (
    Refusal(
        name="trace: no file of a run",
        command="shards trace run.json --step 0",
        says=r"run\.json is not a file: name the one with a run's saved options\.$",
    ),
    Refusal(
        name="trace: a folder for a run",
        command="shards trace data --step 0",
        scene=first,
        says=r"data is not a file: name the one with a run's saved options\.$",
    ),
    Refusal(
        name="trace: a file of a run that is no JSON",
        command="shards trace run.json --step 0",
        scene=holding("run.json", "{"),
        says=r"run\.json holds no valid JSON \(",
    ),
    Refusal(
        name="trace: a run at a URL",
        command="shards trace s3://b/run.json --step 0",
        says=r"RUN: s3://b/run\.json is a URL; give a path on this machine\." + _HELP,
    ),
    _saved("a key too many", r"run\.colour is not known\.$", colour=1),
    _saved("mixes that are none", r"run\.mixes is \{\}, not of type list\.$", mixes={}),
    _saved("no mix", r"the mixes of a run begin at position 0, not at \[\]\.$", mixes=[]),
    _saved("no batch", r"the batch sizes of a run begin at step 0, not at \[\]\.$", batches=[]),
    _saved("a mix without data", r"run\.mixes\[0\]\.data is missing\.$", mixes=[{"start": 0}]),
    _saved(
        "a mix that begins late",
        r"the mixes of a run begin at position 0, not at \[3\]\.$",
        mixes=[{"start": 3, "data": ["data"]}],
    ),
    _saved(
        "an empty batch",
        r"a batch has at least one sample, not 0\.$",
        batches=[{"step": 0, "size": 0}],
    ),
    _saved("steps as text", r"run\.steps is 'many', not of type .*int.*\.$", steps="many"),
    _saved(
        "another objective", r"the objective 'bert': give one of glm, causal\.$", objective="bert"
    ),
    _saved(
        "a cap without steps",
        r"a cap on epochs needs the run's number of steps\.$",
        steps=None,
        max_epochs={"data": 2.0},
    ),
    Accepted(
        name="trace: a saved run",
        command="shards trace run.json --step 0",
        says="^position 0 epoch 0",
        scene=together(first, holding_json("run.json", _RUN)),
    ),
)


def _document(name: str, document: str, says: str, scene: Scene = dataset) -> Refusal:
    return Refusal(
        name=f"trace: a document {name}",
        command=f"shards trace --data data {_SIZE} --document '{document}'",
        says=says,
        scene=scene,
    )


_NONE = (
    r": give SHARD:ROW, the input's PATH:POSITION, an id or a URL\. What was dropped, and why, is "
    r"in "
    r"the audit tables\.$"
)
_DOCUMENTS = (
    _document(
        "that is not there", "a-99", r"there is no document a-99 in the data of this run" + _NONE
    ),
    _document(
        "of no position",
        "a.jsonl:7",
        r"there is no document a\.jsonl:7 in the data of this run" + _NONE,
    ),
    _document(
        "of no url", "https://a.example/99", r"there is no document https://a\.example/99 in the"
    ),
    Accepted(
        name="trace: a document by its url",
        scene=dataset,
        command=f"shards trace --data data {_SIZE} --document https://a.example/5",
        says=r"path=a\.jsonl .* id=a-5 url=https://a\.example/5 step \d+ ",
    ),
    Accepted(
        name="trace: a document that was removed",
        scene=dataset,
        command=f"shards trace --data data {_SIZE} --document a-3 --until 50",
        says=r"id=a-3 .* removed: it is no longer trained on$",
    ),
)

_OPENED = "import shards\nd = shards.Dataset.open('data')\n"
_SAMPLER = (
    _OPENED + "s = shards.streams_of(d)\nw = shards.causal_windows(64)\n"
    "def sampler(streams=s, **more):\n"
    "    return shards.Sampler(streams, **{'seed': 0, 'num_scatters': 1, 'window': w, **more})\n"
)
_MIXES = (
    "from shards import BatchSize, Mix, Run\n"
    "m, b = (Mix(start=0, data=('data',)),), (BatchSize(step=0, size=4),)\n"
)


def _python(name: str, lines: str, says: str, scene: Scene = first, *, code: int = 2) -> Refusal:
    kind = "UserError" if code == 2 else "ValueError"
    return Refusal(
        name=f"python: {name}", python=lines, says=rf"^{kind}: {says}", scene=scene, code=code
    )


_PYTHON = (
    _python(
        "no dataset", "import shards\nshards.Dataset.open('gone')", r"gone does not exist", nothing
    ),
    _python(
        "no source",
        _OPENED + "d.documents('note')",
        r"data has no source 'note': did you mean notes",
    ),
    _python(
        "streams of no source", _OPENED + "shards.streams_of(d, 'x')", r"data has no source 'x'"
    ),
    _python("a number that is not there", _OPENED + "d.as_of(2)", r"there is no manifest number 2"),
    _python(
        "a sampler of no stream",
        _SAMPLER + "sampler([])",
        r"there must be streams, and each must hold "
        r"tokens; these are \[\]$",
    ),
    _python(
        "a sampler of a stream twice",
        _SAMPLER + "sampler([s[0], s[0]])",
        r"the same data are given "
        r"twice: \w{64}/docs; give them once$",
    ),
    _python(
        "a sampler of no scatter",
        _SAMPLER + "sampler(num_scatters=0)",
        r"0 scatters: there must be",
    ),
    _python(
        "caps without an end",
        _SAMPLER + "sampler(epoch_caps={s[0].name: 2})",
        r"epoch_caps need `end`, "
        r"the position after the last one$",
        code=1,
    ),
    _python(
        "a cap on no stream",
        _SAMPLER + "sampler(epoch_caps={'x': 2}, end=5)",
        r"an epoch cap is given "
        r"for x, which is no stream with text: ",
    ),
    _python(
        "a position below 0",
        _SAMPLER + "sampler().draw([3, -1])",
        r"position -1 is negative$",
        code=1,
    ),
    *(
        _python(
            f"a state with another {name}",
            _SAMPLER
            + f"state = sampler().state_dict(99)\nsampler({change}).load_state_dict(state)",
            rf"this run cannot continue the saved one at position 99: {name} was .*, now it is "
            rf".*\. Set it "
            r"as it was \(new data and new weights as a further stage from 99 on\), or start a "
            r"new run\.$",
        )
        for name, change in (
            ("seed", "seed=1"),
            ("num_scatters", "num_scatters=2"),
            ("window", "window=shards.causal_windows(65)"),
            ("stages", "s[:1]"),
        )
    ),
    _python(
        "a state of another version",
        _SAMPLER + "x = sampler()\nx.load_state_dict({**x.state_dict(9), 'version': 2})",
        r"this run cannot continue the saved one at position 9: version was 2, now it "
        r"is 1\.",
    ),
    _python(
        "a state of other shards",
        _SAMPLER + "x = sampler()\nx.load_state_dict({**x.state_dict(9), 'shards': {}})",
        r"this run cannot continue the saved one at position 9: shards was \{\}, now",
    ),
    _python(
        "windows of nothing",
        "import shards\nshards.causal_windows(0)",
        r"windows of 0 tokens cannot "
        r"have a slack of 0: the length must be at least 1",
        nothing,
        code=1,
    ),
    _python(
        "windows with too much slack",
        "import shards\nshards.glm_windows(64, slack=32)",
        r"windows of "
        r"63 tokens cannot have a slack of 32",
        nothing,
        code=1,
    ),
    _python(
        "windows with slack below 0",
        "import shards\nshards.glm_windows(64, slack=-1)",
        r"windows of "
        r"63 tokens cannot have a slack of -1",
        nothing,
        code=1,
    ),
    _python(
        "a run of an empty batch",
        _MIXES + "Run(mixes=m, batches=(BatchSize(step=0, size=0),))",
        r"a batch has at least one sample, not 0\.$",
        nothing,
    ),
    _python(
        "a run without mixes",
        _MIXES + "Run(mixes=(), batches=b)",
        r"the mixes of a run begin at "
        r"position 0, not at \[\]\.$",
        nothing,
    ),
    _python(
        "a run whose slack does not fit",
        _MIXES + "Run(mixes=m, batches=b, length=64, slack=40).sampler()",
        r"windows of 63 tokens cannot have a slack of 40: .*half the length\.$",
    ),
    _python(
        "pinning data that are gone",
        _MIXES + "import shards\nshards.pinned(Run(mixes=m, batches=b))",
        r"data does not exist",
        nothing,
    ),
    _python(
        "a switch to a number that is gone",
        _MIXES + "import shards\nr = shards.pinned(Run(mixes=m, "
        "batches=b))\nshards.switched(r, 8, numbers={'data': 9}, weight=shards.UNSEEN)",
        r"there is no "
        r"manifest number 9: this dataset has the numbers 1 to 1\.",
    ),
    Refusal(
        name="python: a token outside the vocabulary",
        python=_OPENED + "d.vocabulary.decode([384])",
        says=r"^DamageError: token id 384 is outside the vocabulary of 384 ids\.$",
        scene=first,
    ),
    Refusal(
        name="python: a token below 0",
        python=_OPENED + "d.vocabulary.decode([-1])",
        scene=first,
        says=r"^DamageError: token id -1 is outside the vocabulary of 384 ids\.$",
    ),
    *(
        Refusal(
            name=f"python: document {number} of a dataset",
            python=_OPENED + f"d.documents('notes')[{number}]",
            says=rf"^IndexError: there is no document {number}: there are 38$",
            scene=first,
            code=1,
        )
        for number in (38, -1)
    ),
    *(
        Refusal(
            name=f"python: windows {positions} of one pass",
            python=_SAMPLER + f"shards.OnePass(s, window=w, at_most=5).draw({positions})",
            says=r"^IndexError: positions -?\d to \d: this pass has 5 windows$",
            scene=first,
            code=1,
        )
        for positions in ([5], [-1, 0], [0, 5])
    ),
)

_WRITING = (
    "import numpy as np, pyarrow as pa, shards\nfrom pathlib import Path\n"
    "def columns(**more):\n"
    "    given = {'tokens': pa.array([2, 1], pa.int32()), 'prompt_tokens': pa.array([0, 0], "
    "pa.int32()),\n"
    "             'order': pa.array([1, 2], pa.uint64()), **more}\n"
    "    return pa.table({name: value for name, value in given.items() if value is not None})\n"
    "def write(tokens=((1, 2), (3,)), kind='<u2', **more):\n"
    "    shards.write_shard(Path('g/s/0'), columns(**more), directory=Path(), "
    "dtype=np.dtype('<u2'),\n"
    "                       tokens=[np.array(each, kind) for each in tokens])\n"
)


def _written(name: str, lines: str, says: str, *, before: str = "") -> Refusal:
    return Refusal(
        name=f"write_shard: {name}",
        python=_WRITING + lines,
        says=says if before else rf"^ValueError: {says}",
        before=before and rf"^ValueError: {before}",
        code=1,
        writes=("g", "g/*"),
    )


_WRITTEN = (
    _written("too few tokens", "write([[1, 2]])", r"2 tokens were given, the documents have 3$"),
    _written(
        "too many tokens", "write([[1, 2], [3, 4]])", r"4 tokens were given, the documents have 3$"
    ),
    _written(
        "tokens of another type",
        "write(kind='<i4')",
        r"a chunk of 1-d int32 tokens, not 1-d uint16$",
    ),
    _written(
        "tokens in two dimensions",
        "write([[[1, 2, 3]]])",
        r"a chunk of 2-d uint16 tokens, not 1-d ",
    ),
    _written(
        "no order",
        "write(order=None)",
        r"^prompt_tokens: int32$",
        before=r"documents need a column 'order' of uint64: tokens: int32$",
    ),
    _written(
        "prompts of another type",
        "write(prompt_tokens=pa.array([0, 0]))",
        r"^order: uint64$",
        before=r"documents need a column 'prompt_tokens' of int32: tokens: int32 prompt_tokens: "
        r"int64$",
    ),
    _written(
        "an order with a null",
        "write(order=pa.array([None, 1], pa.uint64()))",
        r"documents have nulls "
        r"in column 'order'$",
    ),
    Accepted(name="write_shard: what is right", python=_WRITING + "write()", says="^$"),
)

_EXPOSED = (
    Refusal(
        name="takedown: a run of data that are gone",
        scene=together(
            dataset, holding_json("run.json", {**_RUN, "mixes": [{"start": 0, "data": ["gone"]}]})
        ),
        command="shards remove data --id a-1 --reason x --run run.json",
        says=r"gone does not exist",
    ),
    Accepted(
        name="takedown: the steps that saw it",
        scene=together(dataset, holding_json("run.json", _RUN)),
        command="shards remove data --id a-5 --dry-run --run run.json",
        says=r"run\.json.*step",
    ),
)

ROWS = (*_FLAGS, *_DATA, *_CAPS, *_SAVED, *_DOCUMENTS, *_PYTHON, *_WRITTEN, *_EXPOSED)
