"""Command lines of the trainer that are refused before anything is read."""

from collections.abc import Mapping
from typing import Any

from tests.refusals.refusal import Refusal, Said, nothing, with_scene
from tests.refusals.scenes import holding, together
from tests.refusals.scenes_shards import holding_json
from tests.refusals.scenes_trainer import SHAPE, imported

_BASE = "trainer.train --data data --model tiny --batch-size 4"
_TRAIN = f"{_BASE} --max-steps 9"
_FILE = "trainer.train --data data --model model.json --batch-size 4"
_TUNE = "trainer.finetune --task prompted --data items --init-from run --save out"
_OF_TRAIN = r" python -m trainer\.train --help lists every flag$"

_COMMANDS: Mapping[str, Said] = {
    # Flags of other trainers.
    "trainer.train --train_micro --seq_length=512 --train-iters 9 --micro_batch=4": (
        r"unknown flags: --train_micro --seq_length: here --length N --train-iters: here"
        r" --max-steps N, --max-tokens N or --epochs N --micro_batch: did you mean"
        r" --micro-batch\? python -m trainer\.train --help lists"
    ),
    "trainer.finetune --learning_rate": r"unknown flag --learning_rate: here --lr LR\. python -m",
    "trainer.export --output-dir": (
        r"unknown flag --output-dir: here --save DIR of training, --output DIR of trainer\.exp.*"
    ),
    # What training is told.
    f"{_TRAIN} --modle x": r"unknown flag --modle: did you mean --model\?" + _OF_TRAIN,
    f"{_TRAIN} --betas 0.9": r"--betas: expected 2 arguments\." + _OF_TRAIN,
    f"{_TRAIN} --schedule cosin": (
        r"--schedule cosin: did you mean cosine\? Give one of cosine, linear, constant\."
    ),
    f"{_TRAIN} --micro-batch 2,0": r"--micro-batch: 0 is not at least 1\.",
    f"{_TRAIN} --save-every 0": r"--save-every: 0 is not at least 1\.",
    f"{_TRAIN} --save-every epochs": r"--save-every: 'epochs' is not a whole number",
    f"{_TRAIN} --eval-every -1": r"--eval-every: '-1' is not a whole number",
    f"{_TRAIN} --save s3://b/run": r"--save: s3://b/run is a URL; give a path on this machine",
    f"{_TRAIN} --eval-task lambada=x --eval-every 0": (
        r"--eval-task is asked at every --eval-every, which is 0: give steps\.$"
    ),
    f"{_TRAIN} --sample-every 5": (
        r"--sample-every N says when and --sample-prompts FILE says of what samples are written:"
        r" give both\.$"
    ),
    f"{_TRAIN} --sample-prompts x": r"--sample-every N says when and --sample-prompts FILE says",
    f"{_TRAIN} --at-end wait": (
        r"--at-end wait waits for a newer manifest: give --follow with it\.$"
    ),
    f"{_TRAIN} --extend-positions": (
        r"--extend-positions says how to read --init-from PATH: give both\.$"
    ),
    "trainer.train --data data --batch-size 4": (
        r"say which model to train: --model NAME, one of glm-base, glm-large, glm-large-chinese,"
        r" glm-2b, glm-10b, glm-10b-chinese, gpt2-d12, tiny, or FILE\.json\.$"
    ),
    "trainer.train --data hf:words --model tiny --batch-size 4": (
        r"hf:words names no dataset of the hub: write OWNER/NAME, where OWNER is"
    ),
    "trainer.train --model tiny --batch-size 4": r"give --data, or the file of a run's opt",
    "trainer.train --model tiny --data data": r"give --batch-size, or the file of a run's",
    "trainer.train --model tiny --data data --micro-batch 2,1": (
        r"--micro-batch 2,1 is by node: give --batch-size N with it, a multiple of what all ranks"
        r" compute at once\.$"
    ),
    # When it ends.
    f"{_TRAIN} --epochs 1": (
        r"--max-steps and --epochs both say when the run ends: give one of them\.$"
    ),
    f"{_TRAIN} --max-tokens 9 --epochs 1": (
        r"--max-steps and --max-tokens and --epochs both say when the run ends"
    ),
    f"{_TRAIN} --follow --data-from 9 data": (
        r"--follow changes the data as manifests come, and --data-from at given positions: give"
        r" one of them\.$",
        imported,
    ),
    f"{_TRAIN} --follow --max-epochs data=2": (
        r"--follow reads text that nobody knows yet, so that --max-epochs cannot be checked: leave"
        r" it out \(--at-end wait reads text once, unless --follow-weight or weights of data make"
        r" some repeat before the rest ends\)\.$",
        imported,
    ),
    f"{_BASE} --epochs 0": (
        r"--epochs: '0' is not a number above 0, as in 1 or 0\.5\." + _OF_TRAIN
    ),
    f"{_BASE} --epochs nan": r"--epochs: 'nan' is not a number above 0",
    f"{_BASE} --follow": (
        r"--follow takes text that is not there yet: say when the run ends with --max-steps N or"
        r" --max-tokens N\.$"
    ),
    f"{_BASE} --epochs 2 --data-from 9 data": r"--data-from changes the data on the way: say when",
    f"{_BASE} --max-epochs data=2": (
        r"--max-epochs caps how often text is read until the run ends: say when the run ends"
    ),
    # Recipes and models.
    f"{_BASE} --recipe glm-larg": (
        r"--recipe glm-larg: there is no such file, and no recipe of that name: did you mean"
        r" glm-large\? Give one of glm-10b, .*, gpt2-124m\.$"
    ),
    f"{_BASE} --recipe mine.args": (r"unknown flag --qqqq\.", holding("mine.args", "--qqqq 5\n")),
    "trainer.train --data data --model glm-larg --batch-size 4": (
        r"--model glm-larg is neither a name nor a file that ends in \.json: did you mean"
        r" glm-large\? Give one of glm-base, "
    ),
    _FILE: r"there is no file model\.json; --model takes a name or a JSON file\.$",
    # Fine-tuning.
    f"{_TUNE} --length-penalty -1": r"--length-penalty: '-1' is not a number from 0 on\.",
    f"{_TUNE} --beam-penalty nan": r"--beam-penalty: 'nan' is not a number\.",
    f"{_TUNE} --beam-penalty 1": r"--beam-penalty compares beams: give --beams N with it\.$",
    f"{_TUNE} --seed 9223372036854775808": (
        r"--seed: '9223372036854775808' is not a whole number below 9223372036854775808\."
    ),
    f"{_TUNE} --min-answer 9 --max-answer 8": (
        r"--min-answer 9 is more than 8, the most tokens of a text: lower it, or raise"
        r" --max-answer\.$"
    ),
    f"{_TUNE} --loss hing": r"--loss hing: did you mean hinge\? Give one of ",
    f"{_TUNE} --deepspeed qqqq": (
        r"--deepspeed qqqq: there is no such file, and no preset of that name: "
    ),
    _TUNE.replace("prompted", "tnew"): (
        r"--task tnew: there is no such task, and no such file: did you mean tnews\? Give one of"
        r" .*, or FILE\.json of one's own\.$"
    ),
    # Writing.
    "trainer.generate run x --temperature -1": r"--temperature -1\.0: a number from 0 on\.$",
    "trainer.generate run x --temperature inf": r"--temperature inf: a number from 0 on\.$",
    "trainer.generate run x --top-p 1.5": r"--top-p 1\.5: a probability, from 0 to 1\.$",
    "trainer.generate run x --top-p -0.1": r"--top-p -0\.1: a probability, from 0 to 1\.$",
    "trainer.generate run x --length-penalty nan --beams 2": r"--length-penalty nan: a number\.$",
    "trainer.generate run x --min-new-tokens 9 --max-new-tokens 8": (
        r"--min-new-tokens 9 is more than --max-new-tokens 8\.$"
    ),
    "trainer.generate run x --beams 2 --temperature 1": (
        r"--beams 2 takes the most probable text, and --temperature, --top-k and --top-p say how"
        r" to draw one: give the one or the others\.$"
    ),
    "trainer.generate run x --beams 2 --top-k 5": r"--beams 2 takes the most probable text",
    "trainer.generate run x --beams 2 --top-p 0.5": r"--beams 2 takes the most probable text",
    "trainer.generate run x --length-penalty 1": (
        r"--length-penalty compares beams: give --beams N with it\.$"
    ),
    "trainer.generate run x --samples 2": (
        r"--samples 2: they would all be the same, as the most probable text is taken\. Give"
        r" --temperature, --top-k or --top-p\.$"
    ),
    "trainer.generate run x --prompts gone": r"gone cannot be read: No such file or directory\.$",
    "trainer.generate run --prompts p": (
        r"p has no prompt: write one a line\.$",
        holding("p", "\n \n"),
    ),
    "trainer.generate gone x": (
        r"there is no file or folder gone: give a run's folder or a checkpoint\.$",
        imported,
    ),
    "trainer.generate here x": (
        r"here holds no checkpoint of trainer\.train\. If it is a published one, say which model"
        r" it is: --model NAME, one of glm-base, .*, or FILE\.json\.$",
        together(imported, holding("here/x")),
    ),
    "trainer.generate here x --model tiny": (
        r"the tokenizer of here is not found \(its data are not known\): give it, --tokenizer"
        r" sentencepiece:FILE, tiktoken:NAME or hf:FILE\.$",
        together(imported, holding("here/x")),
    ),
    # Exports, plots, tasks.
    "trainer.export run --output out --to safetensors --vocabulary 5": (
        r"--vocabulary is for --to hf, not safetensors\.$"
    ),
    "trainer.plot gone": (
        r"gone has no log\.jsonl: name the folder that a run was given as --save\.$"
    ),
    "trainer.evaluate run --length 9": r"--length is of tasks: give --task NAME=FILE with it\.$",
    "trainer.evaluate run --blank mask": r"--blank is of tasks: give --task NAME=FILE with it\.$",
    "trainer.evaluate run --tokenizer x:y": (
        r"--tokenizer is of tasks: give --task NAME=FILE with it\.$"
    ),
    "trainer.evaluate run --task lambada": (
        r"--task lambada: give NAME=FILE, a task and the file of its items"
    ),
    "trainer.evaluate run --task lambada=gone": r"--task lambada=gone: there is no file gone\.$",
    "trainer.evaluate run --task lambada=x --task lambada=x": (
        r"--task lambada=x: lambada is there already, with x\.$",
        holding("x"),
    ),
    "trainer.evaluate run --task lambada=x --eval-samples 9": (
        r"--eval-samples is of held-out loss: give --data DIR with it\.$",
        holding("x"),
    ),
}

_NUMBERS = (
    ("--dropout", ("1", "-0.1", "nan"), "not a number from 0 to below 1"),
    ("--betas 0.9", ("1",), "not a number from 0 to below 1"),
    ("--eps", ("0", "inf"), r"not a number above 0, as in 1 or 0\.5"),
    ("--weight-decay", ("-0.1", "inf"), "not a number from 0 on"),
    ("--warmup", ("-1",), "not a number from 0 on"),
    ("--follow-weight", ("x", "0", "nan", "65537"), "neither unseen nor a number above 0"),
)
"""Flags of training, values that they do not take, and what those are not."""

_BOUNDS = (
    "--dropout 0 --betas 0 0.999 --eps 1e-30 --weight-decay 0 --decay-steps 1 --micro-batch 1"
    " --save-every 1 --keep 1 --eval-every 0 --eval-samples 0 --log-every 1 --max-bad-losses 1"
    " --follow-weight 65536 --sample-tokens 1 --warmup 0 --lr-floor 0",
    "--dropout 0.99 --betas 0.9999 0 --follow-weight unseen --save-every epoch --eval-every"
    " epoch --lr-floor 1 --warmup 8 --follow --at-end wait --slack 0",
)
"""The other side: these are taken, and then there are no data."""

_NEEDED = {
    "task": ("prompted", r"--task NAME is missing: .+ Known are .*, prompted, "),
    "data": ("items", r"--data FOLDER is missing: "),
    "init-from": ("run", r"--init-from PATH is missing: "),
    "save": ("out", r"--save DIR is missing: "),
}
"""Flags without which nothing is tuned, what they have here, and what is said."""

_OF_TEXTS = ("--beams 4", "--no-repeat-ngram 2", "--min-answer 1", "--max-answer 5", "--by-loss")

_PROMPTS = {
    '{"prompt": "a"}\n{\n': r"p\.jsonl, line 2: ",
    '{"text": "a"}\n': r'p\.jsonl, line 1: there is no field "prompt"',
    '{"prompt": 3}\n': r'p\.jsonl, line 1: the field "prompt" is 3\. Expected a text\.$',
    '\n["x"]\n': r"p\.jsonl, line 2: ",
}

_FILES = {
    "{": r"model\.json is not valid JSON \(.*\): correct it there\.$",
    "[1]": r"model\.json is not a JSON object: expected keys and values in \{…\}\.$",
    "[" * 100_000: r"model\.json is nested too deeply: correct it there\.$",
    r'{"x": "\ud800"}': (
        r"model\.json is not valid JSON \(\\ud800 in it is half a character; write both halves, or"
        r" U\+FFFD\)"
    ),
    '{"num_layers": 2, "num_layers": 3}': (
        r"model\.json is not valid JSON \(the key 'num_layers' stands there twice, with 2, 3\):"
        r" correct it there\.$"
    ),
}
"""What model.json holds, and what is said of it."""

_SHAPES: tuple[tuple[str, Any, str], ...] = (
    ("colour", 1, r"\.colour is not known"),
    ("num_layers", "2", r"\.num_layers is '2', not of type int"),
    ("num_layers", 0, r": num_layers is 0; expected 1 to 16777216"),
    ("hidden_size", 2**24 + 1, r": hidden_size is 16777217; expected 1 to 16777216"),
    ("num_heads", 0, r": num_heads is 0; expected 1 to 16777216"),
    ("vocab_size", 2**24 + 1, r": vocab_size is 16777217; expected 1 to 16777216"),
    ("max_positions", 0, r": max_positions is 0; expected 1 to 16777216"),
    ("num_heads", 5, r": hidden_size 32 is not a multiple of num_heads 5"),
    ("vocab_size", 385, r": vocab_size is 385; expected a multiple of 128, here 512"),
    ("hidden_dropout", 1, r": hidden_dropout is 1; expected 0 <= hidden_dropout < 1"),
    ("hidden_dropout", -0.1, r": hidden_dropout is -0\.1; expected 0 <= hidden_dropout < 1"),
    ("attention_dropout", 1, r": attention_dropout is 1; expected 0 <= attention_dropout < 1"),
    ("layernorm_eps", 1, r": layernorm_eps is 1; expected 0 <= layernorm_eps < 1"),
    ("init_std", 1000, r": init_std is 1000; expected 0 <= init_std < 1000"),
)
"""A key of model.json, its value, and what is said of it."""

_AT_BOUNDS = {
    "num_layers": 2**24,
    "max_positions": 1,
    "num_heads": 32,
    "hidden_dropout": 0,
    "attention_dropout": 0.999,
    "layernorm_eps": 0,
    "init_std": 999,
    "vocab_size": 128,
}
_NO_DATA = r"^trainer\.train: data does not exist"


def _row(command: str, said: Said, name: str = "") -> Refusal:
    says, scene = with_scene(said, nothing)
    return Refusal(name=name or command, command=command, says=says, scene=scene)


def _without(flag: str, value: str) -> str:
    return _TUNE.replace(f"--{flag} {value} ", "").removesuffix(f" --{flag} {value}")


ROWS = (
    *(_row(command, said) for command, said in _COMMANDS.items()),
    *(
        _row(
            f"{_TRAIN} {flag} {value}",
            rf"{flag.split()[0]}: '{value}' is {meaning}\." + _OF_TRAIN,
        )
        for flag, values, meaning in _NUMBERS
        for value in values
    ),
    *(_row(f"{_TRAIN} {flags}", (_NO_DATA, imported)) for flags in _BOUNDS),
    *(_row(_without(flag, value), says) for flag, (value, says) in _NEEDED.items()),
    *(
        _row(
            f"{_TUNE.replace('prompted', 'tnews')} {flags}",
            rf"{flags.split()[0]}: the task tnews writes no texts, and has no use for it\.$",
        )
        for flags in _OF_TEXTS
    ),
    *(
        _row(
            "trainer.generate run --prompts p.jsonl",
            (says, holding("p.jsonl", content)),
            f"generate: prompts as {content}",
        )
        for content, says in _PROMPTS.items()
    ),
    *(
        _row(_FILE, (says, holding("model.json", content)), f"train: a model as {content:.40}")
        for content, says in _FILES.items()
    ),
    *(
        _row(
            _FILE,
            (
                rf"model\.json does not describe a model: model\.json{says}\.$",
                holding_json("model.json", {**SHAPE, key: value}),
            ),
            f"train: a model with {key} {value}",
        )
        for key, value, says in _SHAPES
    ),
    _row(
        _FILE,
        (
            r"model\.json does not describe a model: model\.json\.hidden_size is missing\.$",
            holding_json("model.json", {}),
        ),
        "train: a model with nothing",
    ),
    _row(
        _FILE,
        (_NO_DATA, together(imported, holding_json("model.json", {**SHAPE, **_AT_BOUNDS}))),
        "train: a model at its bounds",
    ),
)
