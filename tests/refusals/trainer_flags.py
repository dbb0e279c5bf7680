"""Command lines of the trainer that are refused before anything is read."""

from typing import Any

from tests.refusals.refusal import Refusal, nothing
from tests.refusals.scenes import Scene, holding, together
from tests.refusals.scenes_shards import holding_json
from tests.refusals.scenes_trainer import SHAPE, imported

_TRAIN = "trainer.train --data data --model tiny --batch-size 4 --max-steps 9"
_HELP = r" python -m {} --help lists every flag$"
_OF_TRAIN = _HELP.format(r"trainer\.train")


def _row(command: str, name: str, says: str, scene: Scene = nothing) -> Refusal:
    program = command.split(maxsplit=1)[0].removeprefix("trainer.")
    return Refusal(name=f"{program}: {name}", command=command, says=says, scene=scene)


def _train(flags: str, name: str, says: str, scene: Scene = nothing) -> Refusal:
    return _row(f"{_TRAIN} {flags}", name, says, scene)


def _goes_on(flags: str, name: str) -> Refusal:
    """The other side of bounds: the command line is taken, and then there are no data."""
    return _row(
        f"{_TRAIN} {flags}", name, r"^trainer\.train: data does not exist: give a", imported
    )


_DATA = (
    _row(
        "trainer.train --data hf:words --model tiny --batch-size 4",
        "published data without their owner",
        r"hf:words names no dataset of the hub: write OWNER/NAME, where OWNER is",
    ),
)
_FOREIGN = (
    Refusal(
        name="train: flags of other trainers",
        command="trainer.train --train_micro --seq_length=512 --train-iters 9 --micro_batch=4",
        says=r"unknown flags: --train_micro --seq_length: here --length N "
        r"--train-iters: here --max-steps N, --max-tokens N or --epochs N "
        r"--micro_batch: did you mean --micro-batch\? python -m trainer\.train --help lists",
    ),
    *(
        Refusal(
            name=f"{command}: a flag of other trainers",
            command=f"trainer.{command} {flag}",
            says=rf"unknown flag {flag}: {hint}\. python -m trainer\.{command} --help lists",
        )
        for command, flag, hint in (
            ("finetune", "--learning_rate", "here --lr LR"),
            ("evaluate", "--fp16", "here --precision of training, --dtype of the other commands"),
            ("generate", "--num-beams", "here --beams N"),
            (
                "export",
                "--output-dir",
                r"here --save DIR of training, --output DIR of trainer\.exp.*",
            ),
        )
    ),
)

_SETTINGS = (
    _train(
        "--modle x", "a mistyped flag", r"unknown flag --modle: did you mean --model\?" + _OF_TRAIN
    ),
    _train(
        "--lr 1e-4 words",
        "words that belong to no flag",
        r"words: belongs to no flag\. A value with "
        r"spaces stands in quotes\." + _OF_TRAIN,
    ),
    _train(
        "--lr x", "a rate that is no number", r"--lr: 'x' is not a number, as in 3, 0\.5 or 1e-4\."
    ),
    *(
        _train(flags, flags, rf"{flags.split()[0]}: '{wrong}' is {meaning}\." + _OF_TRAIN)
        for flags, wrong, meaning in (
            *(
                (f"--dropout {x}", x, "not a number from 0 to below 1")
                for x in ("1", "-0.1", "nan")
            ),
            ("--betas 0.9 1", "1", "not a number from 0 to below 1"),
            ("--betas -0.1 0.9", "-0.1", "not a number from 0 to below 1"),
            *((f"--eps {x}", x, "not a number above 0, as in 1 or 0\\.5") for x in ("0", "inf")),
            *((f"--weight-decay {x}", x, "not a number from 0 on") for x in ("-0.1", "inf")),
            *((f"--warmup {x}", x, "not a number from 0 on") for x in ("-1", "inf")),
            *(
                (f"--follow-weight {x}", x, "neither unseen nor a number above 0")
                for x in ("x", "0", "-1", "nan", "65537")
            ),
        )
    ),
    _train("--betas 0.9", "one beta", r"--betas: expected 2 arguments\." + _OF_TRAIN),
    _train(
        "--schedule cosin",
        "a mistyped schedule",
        r"--schedule cosin: did you mean cosine\? Give one of "
        r"cosine, linear, constant\.",
    ),
    _train(
        "--precision fp8",
        "another precision",
        r"--precision fp8: .*[Gg]ive one of auto, bf16, fp16, "
        r"fp32\.",
    ),
    *(
        _train(f"{flag} 0", f"{flag} 0", rf"{flag}: 0 is not at least 1\." + _OF_TRAIN)
        for flag in (
            *("--decay-steps", "--micro-batch", "--save-every", "--keep", "--log-every"),
            *("--max-bad-losses", "--sample-tokens"),
        )
    ),
    _train(
        "--micro-batch 2,0", "a micro-batch of 0 on a node", r"--micro-batch: 0 is not at least 1\."
    ),
    *(
        _train(f"{flag} {text}", f"{flag} {text}", rf"{flag}: '{text}' is not a whole number")
        for flag, text in (
            ("--save-every", "epochs"),
            ("--eval-every", "-1"),
            ("--eval-samples", "x"),
        )
    ),
    _train(
        "--save s3://b/run",
        "saves at a URL",
        r"--save: s3://b/run is a URL; give a path on this mach",
    ),
    _train(
        "--eval-task lambada=x --eval-every 0",
        "a task that is never asked",
        r"--eval-task is asked at "
        r"every --eval-every, which is 0: give steps\.$",
    ),
    _train(
        "--sample-every 5",
        "samples without prompts",
        r"--sample-every N says when and --sample-prompts "
        r"FILE says of what samples are written: give both\.$",
    ),
    _train("--sample-prompts x", "prompts without samples", r"--sample-every N says when and"),
    _train(
        "--at-end wait",
        "waiting for nothing",
        r"--at-end wait waits for a newer manifest: give --follow "
        r"with it\.$",
    ),
    _train("--at-end stop", "another end", r"--at-end stop: give one of repeat, wait\."),
    _train(
        "--extend-positions",
        "positions of nothing",
        r"--extend-positions says how to read --init-from "
        r"PATH: give both\.$",
    ),
    _goes_on(
        "--dropout 0 --betas 0 0.999 --eps 1e-30 --weight-decay 0 --decay-steps 1 --micro-batch 1 "
        "--save-every 1 --keep 1 --eval-every 0 --eval-samples 0 --log-every 1 --max-bad-losses 1 "
        "--follow-weight 65536 --sample-tokens 1 --warmup 0 --lr-floor 0",
        "the least of everything",
    ),
    _goes_on(
        "--dropout 0.99 --betas 0.9999 0 --follow-weight unseen --save-every epoch --eval-every "
        "epoch "
        "--lr-floor 1 --warmup 8 --follow --at-end wait --slack 0",
        "the most of everything",
    ),
    _row(
        "trainer.train --data data --batch-size 4",
        "no model",
        r"say which model to train: --model NAME, "
        r"one of glm-base, glm-large, glm-large-chinese, glm-2b, glm-10b, glm-10b-chinese, "
        r"gpt2-d12, tiny, "
        r"or FILE\.json\.$",
    ),
    _row(
        "trainer.train --model tiny --batch-size 4",
        "no data",
        r"give --data, or the file of a run's opt",
    ),
    _row(
        "trainer.train --model tiny --data data",
        "no batch",
        r"give --batch-size, or the file of a run's",
    ),
    _row(
        "trainer.train --model tiny --data data --micro-batch 2,1",
        "no batch for two nodes",
        r"--micro-batch 2,1 is by node: give --batch-size N with it, a multiple of what all ranks "
        r"compute "
        r"at once\.$",
    ),
    _row(
        "trainer.train --model tiny --data data=x --batch-size 4",
        "a weight that is none",
        r"data=x: 'x' "
        r"is not a number; write DIR=0\.3\.$",
    ),
    _row(
        "trainer.train --model tiny --data s3://b/data --batch-size 4",
        "data at a URL",
        r"s3://b/data is "
        r"a URL, and training reads from a disk\. Place it there first",
    ),
)

_BASE = "trainer.train --data data --model tiny --batch-size 4"
_ENDS = (
    _row(
        f"{_BASE} --max-steps 9 --epochs 1",
        "two ends",
        r"--max-steps and --epochs both say when the run "
        r"ends: give one of them\.$",
    ),
    _row(
        f"{_BASE} --max-steps 9 --max-tokens 9 --epochs 1",
        "three ends",
        r"--max-steps and --max-tokens and "
        r"--epochs both say when the run ends",
    ),
    _row(f"{_BASE} --max-tokens 0", "no token", r"--max-tokens: 0 is not at least 1\."),
    *(
        _row(
            f"{_BASE} --epochs {text}",
            f"{text} epochs",
            rf"--epochs: '{text}' is not a number above 0, as "
            r"in 1 or 0\.5\." + _OF_TRAIN,
        )
        for text in ("0", "x", "inf", "nan", "-1")
    ),
    *(
        _row(
            f"{_BASE} {flags}",
            name,
            why + r": say when the run ends with --max-steps N or --max-tokens N\.$",
        )
        for flags, name, why in (
            ("--follow", "epochs of data that grow", r"--follow takes text that is not there yet"),
            (
                "--epochs 2 --data-from 9 data",
                "epochs of data that change",
                r"--data-from changes the data "
                r"on the way",
            ),
            (
                "--max-epochs data=2",
                "epochs under a cap",
                r"--max-epochs caps how often text is read until "
                r"the run ends",
            ),
        )
    ),
    _row(
        f"{_BASE} --max-steps 9 --follow --data-from 9 data",
        "data that grow and change",
        r"--follow "
        r"changes the data as manifests come, and --data-from at given positions: give one of "
        r"them\.$",
        imported,
    ),
    _row(
        f"{_BASE} --max-steps 9 --follow --max-epochs data=2",
        "data that grow under a cap",
        r"--follow reads "
        r"text that nobody knows yet, so that --max-epochs cannot be checked: leave it out "
        r"\(--at-end wait "
        r"reads text once, unless --follow-weight or weights of data make some repeat before the "
        r"rest "
        r"ends\)\.$",
        imported,
    ),
    _row(
        f"{_BASE} --recipe glm-larg",
        "a mistyped recipe",
        r"--recipe glm-larg: there is no such file, and no "
        r"recipe of that name: did you mean glm-large\? Give one of glm-10b, .*, gpt2-124m\.$",
    ),
    _row(
        f"{_BASE} --recipe mine.args",
        "a recipe that is wrong",
        r"unknown flag --qqqq\.",
        holding("mine.args", "--qqqq 5\n"),
    ),
)


def _shape(name: str, says: str, **changes: Any) -> Refusal:
    shape = {key: value for key, value in {**SHAPE, **changes}.items() if value != "GONE"}
    return _row(
        "trainer.train --data data --model model.json --batch-size 4",
        f"a model with {name}",
        r"model\.json does not describe a model: model\.json" + says + r"\.$",
        holding_json("model.json", shape),
    )


_FILE = "trainer.train --data data --model model.json --batch-size 4"
_MODELS = (
    _row(
        "trainer.train --data data --model glm-larg --batch-size 4",
        "a mistyped model",
        r"--model glm-larg "
        r"is neither a name nor a file that ends in \.json: did you mean glm-large\? Give one of "
        r"glm-base, ",
    ),
    _row(
        _FILE,
        "no file of a model",
        r"there is no file model\.json; --model takes a name or a JSON file\.$",
    ),
    _row(
        _FILE,
        "a model that is no JSON",
        r"model\.json is not valid JSON \(.*\): correct it there\.$",
        holding("model.json", "{"),
    ),
    _row(
        _FILE,
        "a model that is a list",
        r"model\.json is not a JSON object: expected keys and values in "
        r"\{…\}\.$",
        holding("model.json", "[1]"),
    ),
    _row(
        _FILE,
        "a model nested too deep",
        r"model\.json is nested too deeply: correct it there\.$",
        holding("model.json", "[" * 100_000),
    ),
    _row(
        _FILE,
        "a model with a key twice",
        r"model\.json is not valid JSON \(the key 'num_layers' stands "
        r"there twice, with 2, 3\): correct it there\.$",
        holding("model.json", '{"num_layers": 2, "num_layers": 3}'),
    ),
    _row(
        _FILE,
        "a model with half a character",
        r"model\.json is not valid JSON \(\\ud800 in it is half a "
        r"character; write both halves, or U\+FFFD\)",
        holding("model.json", r'{"x": "\ud800"}'),
    ),
    _shape("no layers", r"\.num_layers is missing", num_layers="GONE"),
    _shape("a key too many", r"\.colour is not known", colour=1),
    _shape("layers as text", r"\.num_layers is '2', not of type int", num_layers="2"),
    *(
        _shape(f"{name} {value}", rf": {name} is {value}; expected 1 to 16777216", **{name: value})
        for name in ("num_layers", "hidden_size", "num_heads", "vocab_size", "max_positions")
        for value in (0, 2**24 + 1)
    ),
    _shape(
        "heads that do not divide it",
        r": hidden_size 32 is not a multiple of num_heads 5",
        num_heads=5,
    ),
    _shape(
        "a vocabulary of 385",
        r": vocab_size is 385; expected a multiple of 128, here 512",
        vocab_size=385,
    ),
    *(
        _shape(
            f"{name} {value}",
            rf": {name} is {value}; expected 0 <= {name} < {end}",
            **{name: value},
        )
        for name, value, end in (
            ("hidden_dropout", 1, 1),
            ("hidden_dropout", -0.1, 1),
            ("attention_dropout", 1, 1),
            ("layernorm_eps", 1, 1),
            ("init_std", 1000, 1000),
            ("init_std", -1, 1000),
        )
    ),
    _row(
        _FILE,
        "a model at its bounds",
        r"^trainer\.train: data does not exist",
        together(
            imported,
            holding_json(
                "model.json",
                {
                    **SHAPE,
                    "num_layers": 2**24,
                    "max_positions": 1,
                    "num_heads": 32,
                    "hidden_dropout": 0,
                    "attention_dropout": 0.999,
                    "layernorm_eps": 0,
                    "init_std": 999,
                    "vocab_size": 128,
                },
            ),
        ),
    ),
)

_TUNE = "trainer.finetune --task prompted --data items --init-from run --save out"
_TUNING = (
    *(
        _row(
            _TUNE.replace(f"--{flag} {value} ", "").removesuffix(f" --{flag} {value}"),
            f"no {flag}",
            rf"--{flag} {shown} is missing: .+"
            + (r" Known are .*, prompted, " if flag == "task" else ""),
        )
        for flag, value, shown in (
            ("task", "prompted", "NAME"),
            ("data", "items", "FOLDER"),
            ("init-from", "run", "PATH"),
            ("save", "out", "DIR"),
        )
    ),
    *(
        _row(f"{_TUNE} {flags}", flags, says)
        for flags, says in (
            ("--epochs 0", r"--epochs: 0 is not at least 1\."),
            ("--batch-size 0", r"--batch-size: 0 is not at least 1\."),
            ("--label-smoothing 1", r"--label-smoothing: '1' is not a number from 0 to below 1\."),
            ("--length-penalty -1", r"--length-penalty: '-1' is not a number from 0 on\."),
            ("--beam-penalty nan", r"--beam-penalty: 'nan' is not a number\."),
            ("--beam-penalty 1", r"--beam-penalty compares beams: give --beams N with it\.$"),
            ("--beams 0", r"--beams: 0 is not at least 1\."),
            (
                "--seed 9223372036854775808",
                r"--seed: '9223372036854775808' is not a whole number below 9223372036854775808\.",
            ),
            ("--seed -1", r"--seed: '-1' is not a whole number from 0 on"),
            ("--max-answer 0", r"--max-answer: 0 is not at least 1\."),
            (
                "--min-answer 9 --max-answer 8",
                r"--min-answer 9 is more than 8, the most tokens of a text: "
                r"lower it, or raise --max-answer\.$",
            ),
            ("--loss hing", r"--loss hing: did you mean hinge\? Give one of "),
            ("--save-every 0", r"--save-every: 0 is not at least 1\."),
            ("--keep 0", r"--keep: 0 is not at least 1\."),
            (
                "--recipe qqqq",
                r"--recipe qqqq: there is no such file, and no recipe of that name: give one ",
            ),
            (
                "--lerning-rate 1",
                r"unknown flag --lerning-rate",
            ),
            (
                "--deepspeed qqqq",
                r"--deepspeed qqqq: there is no such file, and no preset of that name: ",
            ),
        )
    ),
    *(
        _row(
            f"{_TUNE.replace('prompted', 'tnews')} {flags}",
            f"{flags} for a task that writes nothing",
            rf"{flags.split()[0]}: the task tnews writes no texts, and has no use for it\.$",
        )
        for flags in (
            "--beams 4",
            "--no-repeat-ngram 2",
            "--min-answer 1",
            "--max-answer 5",
            "--by-loss",
        )
    ),
    _row(
        _TUNE.replace("prompted", "tnew"),
        "a mistyped task",
        r"--task tnew: there is no such task, and no "
        r"such file: did you mean tnews\? Give one of .*, or FILE\.json of one's own\.$",
    ),
)

_DECODING = (
    ("--temperature -1", r"--temperature -1\.0: a number from 0 on\.$"),
    ("--temperature inf", r"--temperature inf: a number from 0 on\.$"),
    ("--top-p 1.5", r"--top-p 1\.5: a probability, from 0 to 1\.$"),
    ("--top-p -0.1", r"--top-p -0\.1: a probability, from 0 to 1\.$"),
    ("--length-penalty nan --beams 2", r"--length-penalty nan: a number\.$"),
    (
        "--min-new-tokens 9 --max-new-tokens 8",
        r"--min-new-tokens 9 is more than --max-new-tokens 8\.$",
    ),
    (
        "--beams 2 --temperature 1",
        r"--beams 2 takes the most probable text, and --temperature, --top-k and "
        r"--top-p say how to draw one: give the one or the others\.$",
    ),
    ("--beams 2 --top-k 5", r"--beams 2 takes the most probable text"),
    ("--beams 2 --top-p 0.5", r"--beams 2 takes the most probable text"),
    ("--length-penalty 1", r"--length-penalty compares beams: give --beams N with it\.$"),
    (
        "--samples 2",
        r"--samples 2: they would all be the same, as the most probable text is taken\. Give "
        r"--temperature, --top-k or --top-p\.$",
    ),
    ("--samples 0", r"--samples: 0 is not at least 1\."),
    ("--beams 0", r"--beams: 0 is not at least 1\."),
    ("--max-new-tokens 0", r"--max-new-tokens: 0 is not at least 1\."),
    ("--dtype fp8", r"--dtype fp8: .*[Gg]ive one of auto, fp32, bf16, fp16\."),
    ("--top-k x", r"--top-k: 'x' is not a whole number from 0 on"),
    ("--prompts gone", r"gone cannot be read: No such file or directory\.$"),
)
_ASKED = (
    *(_row(f"trainer.generate run x {flags}", flags, says) for flags, says in _DECODING),
    _row(
        "trainer.generate run --prompts p",
        "an empty file of prompts",
        r"p has no prompt: write one a "
        r"line\.$",
        holding("p", "\n \n"),
    ),
    _row(
        "trainer.generate run --prompts p",
        "prompts that are not UTF-8",
        r"p is not UTF-8: its byte 2 is 0xff\.",
        holding("p", b"a\n\xff\n"),
    ),
    *(
        _row(
            "trainer.generate run --prompts p.jsonl",
            f"prompts as {content}",
            says,
            holding("p.jsonl", content),
        )
        for content, says in (
            ('{"prompt": "a"}\n{\n', r"p\.jsonl, line 2: "),
            ('{"text": "a"}\n', r'p\.jsonl, line 1: there is no field "prompt"'),
            ('{"prompt": 3}\n', r'p\.jsonl, line 1: the field "prompt" is 3\. Expected a text\.$'),
            ('\n["x"]\n', r"p\.jsonl, line 2: "),
        )
    ),
    _row(
        "trainer.generate gone x",
        "no such model",
        r"there is no file or folder gone: give a run's folder "
        r"or a checkpoint\.$",
        imported,
    ),
    _row(
        "trainer.generate here x",
        "a folder that holds nothing",
        r"here holds no checkpoint of trainer\.train"
        r"\. If it is a published one, say which model it is: --model NAME, one of glm-base, .*, "
        r"or "
        r"FILE\.json\.$",
        together(imported, holding("here/x")),
    ),
    _row(
        "trainer.generate here x --model tiny",
        "a published model without a tokenizer",
        r"the tokenizer of here is not found \(its data are not known\): give it, --tokenizer "
        r"sentencepiece:FILE, tiktoken:NAME or hf:FILE\.$",
        together(imported, holding("here/x")),
    ),
)

_EXPORT = "trainer.export run --output out"
_EXPORTS = (
    _row(
        f"{_EXPORT} --to onnx",
        "another form",
        r"--to onnx: .*[Gg]ive one of hf, safetensors\.",
    ),
    _row(
        "trainer.export run --to hf",
        "no folder to make",
        r"the following arguments are required: --output\.",
    ),
    *(
        _row(f"{_EXPORT} {flags}", flags, says)
        for flags, says in (
            (
                "--to safetensors --vocabulary 5",
                r"--vocabulary is for --to hf, not safetensors\.$",
            ),
            ("--to hf --shard-bytes 0", r"--shard-bytes: 0 is not at least 1\."),
        )
    ),
    _row(
        "trainer.plot gone",
        "no run",
        r"gone has no log\.jsonl: name the folder that a run was given as "
        r"--save\.$",
    ),
    _row("trainer.plot", "no run at all", r"the following arguments are required: RUN\."),
)

_EVALUATE = "trainer.evaluate run"
_EVALUATIONS = (
    *(
        _row(f"{_EVALUATE} {flags}", flags, says)
        for flags, says in (
            ("--length 9", r"--length is of tasks: give --task NAME=FILE with it\.$"),
            ("--blank mask", r"--blank is of tasks: give --task NAME=FILE with it\.$"),
            ("--tokenizer x:y", r"--tokenizer is of tasks: give --task NAME=FILE with it\.$"),
            ("--blank smask", r"--blank smask: .*[Gg]ive one of gmask, mask\."),
            ("--length 0", r"--length: 0 is not at least 1\."),
            ("--batch-tokens 0", r"--batch-tokens: 0 is not at least 1\."),
            ("--task lambada", r"--task lambada: give NAME=FILE, a task and the file of its items"),
            ("--task lambada=gone", r"--task lambada=gone: there is no file gone\.$"),
        )
    ),
    *(
        _row(f"{_EVALUATE} {flags}", flags, says, holding("x"))
        for flags, says in (
            (
                "--task lambada=x --task lambada=x",
                r"--task lambada=x: lambada is there already, with x\.$",
            ),
            (
                "--task lambada=x --eval-samples 9",
                r"--eval-samples is of held-out loss: give --data DIR with "
                r"it\.$",
            ),
        )
    ),
)

ROWS = (
    *_DATA,
    *_FOREIGN,
    *_SETTINGS,
    *_ENDS,
    *_MODELS,
    *_TUNING,
    *_ASKED,
    *_EXPORTS,
    *_EVALUATIONS,
)
