"""Runs that cannot start: data and model that do not fit, checkpoints of other runs, damage."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from tests.refusals.refusal import Refusal, Said, with_scene
from tests.refusals.scenes import Scene, together
from tests.refusals.scenes_shards import (
    GONE,
    cut,
    holding_json,
    json_changed,
    overwritten,
)
from tests.refusals.scenes_trainer import SHAPE, ready, trained, tuned

_TRAIN = "trainer.train --data data --model model.json --max-steps 4 --batch-size 4"
_AGAIN = f"{_TRAIN} --log-every 1 --save-every 2 --save run"
_ALONE = f"{_TRAIN} --resume run/step-4 --save out"
"""From the last checkpoint or not at all."""


def _row(name: str, command: str, said: Said, scene: Scene) -> Refusal:
    says, its_scene = with_scene(said, scene)
    return Refusal(name=f"train: {name}", command=command, says=says, scene=its_scene)


def _model(**changes: Any) -> Scene:
    return together(trained, holding_json("model.json", {**SHAPE, **changes}))


_FRESH: Mapping[str, Said] = {
    "--length 65": (
        r"--length 65 makes windows of up to 65 tokens, and --model model\.json has 64 positions:"
        r" give a length of at most 64\.$"
    ),
    "": (
        r"data was made with tokenizer tok\.model, whose vocabulary has 384 ids, and model\.json"
        r" has room for 256: set its vocab_size to that or more\.$",
        _model(vocab_size=256),
    ),
    "--model gpt2.json": (
        r"--model gpt2\.json has no block positions, which blank infilling needs: give --objective"
        r" causal, or another model\.$"
    ),
    "--lr 0": r"--lr 0\.0: the peak learning rate must be a number above 0\.$",
    "--lr-floor 1.1": r"--lr-floor 1\.1: it must be a share of the peak, 0 to 1\.$",
    "--warmup 4": (
        r"the warm-up of 4 steps does not end before the decay does, at step 4: lower --warmup, or"
        r" give --decay-steps\.$"
    ),
    "--warmup 0.99 --decay-steps 5": (
        r"the warm-up of 5 steps does not end before the decay does, at step 5: "
    ),
    "--precision fp16": (
        r"this device does not compute in fp16, only in fp32, bf16: give --precision fp32 \(fp16"
        r" on Volta and Turing cards, fp32 on Pascal and on a CPU\)"
    ),
}

_BLANKS = {
    "bert_prop=0.5": (
        r"--blanks bert_prop=0\.5: did you mean bert_prob\? Give one of bert_prob, sentence"
    ),
    "bert_prob=x": r"--blanks bert_prob=x: 'x' is no value of bert_prob\.$",
    "random_position=maybe": (
        r"--blanks random_position=maybe: 'maybe' is no value of random_position\.$"
    ),
    "bert_prob=1.1": r"bert_prob is 1\.1: it must lie between 0 and 1\.$",
    "bert_prob=-0.1": r"bert_prob is -0\.1: it must lie between 0 and 1\.$",
    "span_ratio=nan": r"span_ratio is nan: it must lie between 0 and 1\.$",
    "bert_prob=0.8": (
        r"bert_prob 0\.8 and sentence_prob 0\.3 add up to more than 1; what they leave of 1 is the"
        r" probability of text generation\.$"
    ),
}

_RESUMED: Mapping[str, Said] = {
    "--seed 1": (
        r"run/step-4: this run cannot continue the saved one at position 16: seed was 0, now it is"
        r" 1\. Set it as it was"
    ),
    "--length 60": (
        r"run/step-4: this run cannot continue .*: window was .*'length': 63.*, now it is"
        r" .*'length': 60"
    ),
    "--blanks bert_prob=0.4": (
        r"this run cannot resume from run/step-4: blanks\.bert_prob was 0\.5, now it is 0\.4\. Set"
        r" it back, or start a new run from its weights, which fit the same shape, or with"
        r" --extend-positions more positions: --init-from run/step-4 --save OTHER\.$"
    ),
    "--precision bf16": r"precision was fp32, now it is bf16\. Set it back",
    "": (
        r"model\.num_layers was 2, now it is 3\. Set it back, or start a new run from its weights,"
        r" which fit the same shape",
        _model(num_layers=3),
    ),
    "--length 64": (
        r"model\.max_positions was 64, now it is 128\. Set it back, or start a new run from its"
        r" weights, which fit .* with --extend-positions more positions",
        _model(max_positions=128),
    ),
    "--batch-size 8": (
        r"at step 4 of run/step-4 the run had taken 16 samples; with the current --batch-size it"
        r" would have taken 32\. Give the earlier batch size first, and start the new one at this"
        r" step: --batch-size SIZE 4:SIZE\.$"
    ),
    "--data data:docs": (
        r"this run cannot resume from run/step-4: it was trained on \w{64}/notes, and data has no"
        r" such text: these are other data, or they were overwritten or compacted since\. Give the"
        r" data as they were, or start a new run from its weights: --init-from run/step-4 --save"
        r" OTHER\.$"
    ),
    "--resume none": (
        r"run holds step-[24] and this run would not resume from it: give another --save, or"
        r" --resume auto\.$"
    ),
    "--resume gone": (
        r"--resume gone: there is no checkpoint of that name or in that folder; give a run's"
        r" folder, or one of its step-N\.$"
    ),
    "--resume run/step-3": (
        r"run/step-3 holds checkpoints, but none that is complete on all ranks: there is no"
        r" run/step-3 Bring the missing files back as they were, or start anew in another folder"
    ),
    "--max-steps 3": (
        r"the run in run has taken 4 steps, and would end after 3: give it more, or another"
        r" --save\.$"
    ),
    "--save tuned": (
        r"tuned/step-\d is a checkpoint of trainer\.finetune, and this run cannot resume from it\."
        r" Start from its weights: --init-from tuned/step-\d --save OTHER\.$",
        tuned,
    ),
}

_LIST = "run/step-4/whole-00000.json"
_STATE: Sequence[tuple[str, Any, str]] = (
    ("loader", GONE, "loader"),
    ("identity", None, "identity"),
    ("schedule", 5, "schedule"),
    ("bad_losses", "0", "bad_losses"),
    ("loader.position", -1, r"loader\.position"),
    ("loader.position", 2**62, r"loader\.position"),
    ("loader.shards", [], r"loader\.shards"),
)
"""Where in the state of a run, the value there, and what is said of it."""

_LISTED: Sequence[tuple[str, Any, str]] = (
    ("step", -1, r"step is -1; expected 0 to 4611686018427387904"),
    ("step", 2**62 + 1, r"step is 4611686018427387905; expected"),
    ("step", 3, r"run/step-4 has the list of step-3"),
    ("world", 0, r"world is 0; expected 1 to \d+"),
    ("world", 2, r"run/step-4 lacks what rank 1 of 2 wrote; copy it there from that rank's node"),
    ("stage", 4, r"stage is 4; expected 0 to 3"),
    ("stage", -1, r"stage is -1; expected 0 to 3"),
    ("ranks", [1], r"rank 1 is none of 1"),
    ("ranks", [-1], r"rank -1 is none of 1"),
    ("files", {"../x": {"bytes": 1, "crc32c": 1}}, r"'\.\./x' is no file in it"),
    ("files", {"/x": {"bytes": 1, "crc32c": 1}}, r"'/x' is no file in it"),
    ("files", [], r"checkpoint\.files is \[\], not of type dict"),
    ("colour", 1, r"checkpoint\.colour is not known"),
)
"""The same of the list of a checkpoint's files."""

_FILE = "run/step-4/mp_rank_00_model_states.pt"
_DAMAGE = {
    "a checkpoint cut short": (
        cut(_FILE),
        r"run/step-4/mp_rank_00_model_states\.pt is missing or cut short",
    ),
    "a checkpoint with another byte": (
        overwritten(_FILE, 200_000, b"\xaa\x55"),
        r"run/step-4/mp_rank_00_model_states\.pt is damaged: its checksum differs from the list's",
    ),
    "a list that is no JSON": (cut(_LIST, 5), r"run/step-4/whole-00000\.json holds no valid JSON"),
}

ROWS = (
    *(_row(flags, f"{_TRAIN} {flags}", said, ready) for flags, said in _FRESH.items()),
    *(
        _row(f"blanks {text}", f"{_TRAIN} --blanks {text}", says, ready)
        for text, says in _BLANKS.items()
    ),
    *(
        _row(f"again {flags}", f"{_AGAIN} {flags}", said, trained)
        for flags, said in _RESUMED.items()
    ),
    *(
        _row(
            f"a checkpoint with {path} {value!r:.9}",
            _AGAIN,
            rf"run/step-4 does not hold the state of a run: {told} in its whole-\*\.json is missing"
            r" or of a wrong type\. Bring the file back as it was, or remove the folder, and the"
            r" run resumes from the checkpoint before\.$",
            together(trained, json_changed(_LIST, f"state.{path}", value)),
        )
        for path, value, told in _STATE
    ),
    _row(
        "the only checkpoint, damaged",
        _AGAIN,
        r"remove the folder, and the run starts from the beginning\.$",
        together(
            trained,
            lambda folder: shutil.rmtree(folder / "run" / "step-2"),
            json_changed(_LIST, "state.loader", []),
        ),
    ),
    *(
        _row(
            f"a list of files with {path} {value!r:.9}",
            _ALONE,
            says,
            together(trained, json_changed(_LIST, path, value)),
        )
        for path, value, says in _LISTED
    ),
    *(
        _row(name, _ALONE, says, together(trained, scene))
        for name, (scene, says) in _DAMAGE.items()
    ),
)
