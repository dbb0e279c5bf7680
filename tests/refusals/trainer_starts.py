"""Runs that cannot start: data and model that do not fit, checkpoints of other runs, damage."""

import shutil
from typing import Any

from tests.refusals.refusal import Refusal
from tests.refusals.scenes import Scene, together
from tests.refusals.scenes_shards import (
    GONE,
    cut,
    holding_json,
    json_changed,
    missing,
    overwritten,
)
from tests.refusals.scenes_trainer import SHAPE, ready, trained, tuned

_TRAIN = "trainer.train --data data --model model.json --max-steps 4 --batch-size 4"
_AGAIN = f"{_TRAIN} --log-every 1 --save-every 2 --save run"
_ALONE = f"{_TRAIN} --resume run/step-4 --save out"
"""From the last checkpoint or not at all."""


def _row(
    flags: str, name: str, says: str, scene: Scene = ready, *, command: str = _TRAIN
) -> Refusal:
    return Refusal(
        name=f"train: {name}",
        command=f"{command} {flags}",
        says=says,
        scene=scene,
    )


def _model(**changes: Any) -> Scene:
    return together(trained, holding_json("model.json", {**SHAPE, **changes}))


_DATA = (
    _row(
        "--length 65",
        "windows longer than the model",
        r"--length 65 makes windows of up to 65 tokens, and "
        r"--model model\.json has 64 positions: give a length of at most 64\.$",
    ),
    _row(
        "",
        "a model with too few words",
        r"data was made with tokenizer tok\.model, whose vocabulary has 384 "
        r"ids, and model\.json has room for 256: set its vocab_size to that or more\.$",
        _model(vocab_size=256),
    ),
    _row(
        "--model gpt2.json",
        "blanks without block positions",
        r"--model gpt2\.json has no block positions, "
        r"which blank infilling needs: give --objective causal, or another model\.$",
    ),
    _row(
        "--objective bert", "another objective", r"the objective 'bert': give one of glm, causal\.$"
    ),
    _row(
        "--length 64 --slack 40",
        "too much slack",
        r"windows of 63 tokens cannot have a slack of 40",
    ),
    _row("--scatters 0", "no scatter", r"0 scatters: there must be 1 or more$"),
    _row(
        "--data data:news",
        "no such source",
        r"data has no source 'news': did you mean notes\? Give one of "
        r"docs, notes\.$",
    ),
    _row(
        "--data data data:docs",
        "a source twice",
        r"data@1:docs: its stream \w{64}/docs is given twice\.$",
    ),
    _row(
        "--max-epochs data=0.01",
        "a cap that does not hold",
        r"stream \w{64}/\w+ would be seen .* times by "
        r"position 16, its cap is 0\.01\. End at position",
    ),
    _row("--lr 0", "a rate of 0", r"--lr 0\.0: the peak learning rate must be a number above 0\.$"),
    _row(
        "--lr inf",
        "an infinite rate",
        r"--lr inf: the peak learning rate must be a number above 0\.$",
    ),
    _row(
        "--lr-floor 1.1",
        "a floor above the peak",
        r"--lr-floor 1\.1: it must be a share of the peak, 0 to",
    ),
    _row(
        "--lr-floor -0.1",
        "a floor below 0",
        r"--lr-floor -0\.1: it must be a share of the peak, 0 to 1\.$",
    ),
    _row(
        "--warmup 4",
        "a warm-up as long as the decay",
        r"the warm-up of 4 steps does not end before the decay "
        r"does, at step 4: lower --warmup, or give --decay-steps\.$",
    ),
    _row(
        "--warmup 3 --decay-steps 3",
        "a warm-up as long as a given decay",
        r"the warm-up of 3 steps does not "
        r"end before the decay does, at step 3: ",
    ),
    _row(
        "--warmup 0.99 --decay-steps 5",
        "a share of warm-up that is the decay",
        r"the warm-up of 5 steps does "
        r"not end before the decay does, at step 5: ",
    ),
    _row(
        "--precision fp16",
        "a precision that a CPU lacks",
        r"this device does not compute in fp16, only in "
        r"fp32, bf16: give --precision fp32 \(fp16 on Volta and Turing cards, fp32 on Pascal and "
        r"on a CPU\)",
    ),
)

_BLANKS = tuple(
    _row(f"--blanks {text}", f"blanks {text}", says)
    for text, says in (
        (
            "bert_prop=0.5",
            r"--blanks bert_prop=0\.5: did you mean bert_prob\? Give one of bert_prob, sentence",
        ),
        ("bert_prob=x", r"--blanks bert_prob=x: 'x' is no value of bert_prob\.$"),
        ("bert_prob", r"--blanks bert_prob: '' is no value of bert_prob\.$"),
        (
            "random_position=maybe",
            r"--blanks random_position=maybe: 'maybe' is no value of random_position\.$",
        ),
        ("bert_prob=1.1", r"bert_prob is 1\.1: it must lie between 0 and 1\.$"),
        ("bert_prob=-0.1", r"bert_prob is -0\.1: it must lie between 0 and 1\.$"),
        ("span_ratio=nan", r"span_ratio is nan: it must lie between 0 and 1\.$"),
        ("context_mask_ratio=2", r"context_mask_ratio is 2\.0: it must lie between 0 and 1\.$"),
        (
            "bert_prob=0.8",
            r"bert_prob 0\.8 and sentence_prob 0\.3 add up to more than 1; what they leave of 1 is "
            r"the probability of text generation\.$",
        ),
    )
)

_RESUMED = (
    _row(
        "--seed 1",
        "resumed with another seed",
        r"run/step-4: this run cannot continue the saved one at "
        r"position 16: seed was 0, now it is 1\. Set it as it was",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--scatters 2",
        "resumed with other scatters",
        r"run/step-4: this run cannot continue .*: num_scatters "
        r"was 1, now it is 2\.",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--length 60",
        "resumed with other windows",
        r"run/step-4: this run cannot continue .*: window was .*"
        r"'length': 63.*, now it is .*'length': 60",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--objective causal --model gpt2.json",
        "resumed with another objective",
        r"this run cannot resume from "
        r"run/step-4: \w+.* was .*, now it is .*\. Set it back, or start a new run",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--blanks bert_prob=0.4",
        "resumed with other blanks",
        r"this run cannot resume from run/step-4: blanks\."
        r"bert_prob was 0\.5, now it is 0\.4\. Set it back, or start a new run from its weights, "
        r"which fit the same shape, or with --extend-positions more positions: --init-from "
        r"run/step-4 --save OTHER\.$",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--isolate-documents",
        "resumed with documents apart",
        r"isolate_documents was False, now it is True\. "
        r"Set it back, or",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--dropout 0.1",
        "resumed with other dropout",
        r"model\.attention_dropout was 0\.0, now it is 0\.1\. Set",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--precision bf16",
        "resumed in another precision",
        r"precision was fp32, now it is bf16\. Set it back",
        trained,
        command=_AGAIN,
    ),
    _row(
        "",
        "resumed with more layers",
        r"model\.num_layers was 2, now it is 3\. Set it back, or start a new run from its weights, "
        r"which fit the same shape",
        _model(num_layers=3),
        command=_AGAIN,
    ),
    _row(
        "--length 64",
        "resumed with more positions",
        r"model\.max_positions was 64, now it is 128\. Set it back, "
        r"or start a new run from its weights, which fit .* with --extend-positions more positions",
        _model(max_positions=128),
        command=_AGAIN,
    ),
    _row(
        "--length 32",
        "resumed with fewer positions",
        r"model\.max_positions was 64, now it is 32\. Set it back, "
        r"or start a new run from its weights, which fit the same shape, or with ",
        _model(max_positions=32),
        command=_AGAIN,
    ),
    _row(
        "--batch-size 8",
        "resumed with other batches",
        r"at step 4 of run/step-4 the run had taken 16 samples; "
        r"with the current --batch-size it would have taken 32\. Give the earlier batch size "
        r"first, and start the "
        r"new one at this step: --batch-size SIZE 4:SIZE\.$",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--data data:docs",
        "resumed with less text",
        r"this run cannot resume from run/step-4: it was trained on "
        r"\w{64}/notes, and data has no such text: these are other data, or they were overwritten "
        r"or compacted "
        r"since\. Give the data as they were, or start a new run from its weights: --init-from "
        r"run/step-4 --save "
        r"OTHER\.$",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--data data:docs=1 data:notes=5",
        "resumed with other weights",
        r"run/step-4: this run cannot continue "
        r".*: stages was",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--resume none",
        "a folder that holds a run",
        r"run holds step-[24] and this run would not resume from "
        r"it: give another --save, or --resume auto\.$",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--resume gone",
        "no checkpoint to resume from",
        r"--resume gone: there is no checkpoint of that name or "
        r"in that folder; give a run's folder, or one of its step-N\.$",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--resume run/step-2",
        "an earlier checkpoint",
        r"run holds step-4 and this run would not resume from it: "
        r"give another --save, or --resume auto\.$",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--resume run/step-3",
        "a step that was not saved",
        r"run/step-3 holds checkpoints, but none that is complete on all ranks: there is no "
        r"run/step-3 Bring the missing files back as they were, or start anew in another folder",
        trained,
        command=_AGAIN,
    ),
    _row(
        "--max-steps 3",
        "an end that the run has passed",
        r"the run in run has taken 4 steps, and would end after 3: give it more, or another "
        r"--save\.$",
        trained,
        command=_AGAIN.replace("--max-steps 4 ", ""),
    ),
    _row(
        "--save tuned",
        "a run of fine-tuning",
        r"tuned/step-\d is a checkpoint of trainer\.finetune, and this run "
        r"cannot resume from it\. Start from its weights: --init-from tuned/step-\d --save "
        r"OTHER\.$",
        tuned,
        command=_AGAIN,
    ),
)

_LIST = "run/step-4/whole-00000.json"
_STATE = (
    _row(
        "",
        "the only checkpoint, damaged",
        r"remove the folder, and the run starts from the beginning\.$",
        together(
            trained,
            lambda folder: shutil.rmtree(folder / "run" / "step-2"),
            json_changed(_LIST, "state.loader", []),
        ),
        command=_AGAIN,
    ),
    *(
        _row(
            "",
            f"a checkpoint with {path} {value!r:.9}",
            r"run/step-4 does not hold the state of a run: "
            rf"{told} in its whole-\*\.json is missing or of a wrong type\. Bring the file back "
            rf"as it was, or "
            r"remove the folder, and the run resumes from the checkpoint before\.$",
            together(trained, json_changed(_LIST, f"state.{path}", value)),
            command=_AGAIN,
        )
        for path, value, told in (
            ("loader", GONE, "loader"),
            ("loader", [], "loader"),
            ("identity", None, "identity"),
            ("schedule", 5, "schedule"),
            ("bad_losses", "0", "bad_losses"),
            ("loader.position", -1, r"loader\.position"),
            ("loader.position", 2**62, r"loader\.position"),
            ("loader.position", "16", r"loader\.position"),
            ("loader.shards", [], r"loader\.shards"),
        )
    ),
    *(
        _row(
            "",
            f"a list of files with {path} {value!r:.9}",
            says,
            together(trained, json_changed(_LIST, path, value)),
            command=_ALONE,
        )
        for path, value, says in (
            ("step", -1, r"step is -1; expected 0 to 4611686018427387904"),
            ("step", 2**62 + 1, r"step is 4611686018427387905; expected"),
            ("step", 3, r"run/step-4 has the list of step-3"),
            ("world", 0, r"world is 0; expected 1 to \d+"),
            (
                "world",
                2,
                r"run/step-4 lacks what rank 1 of 2 wrote; copy it there from that rank's node",
            ),
            ("stage", 4, r"stage is 4; expected 0 to 3"),
            ("stage", -1, r"stage is -1; expected 0 to 3"),
            ("ranks", [1], r"rank 1 is none of 1"),
            ("ranks", [-1], r"rank -1 is none of 1"),
            ("files", {"../x": {"bytes": 1, "crc32c": 1}}, r"'\.\./x' is no file in it"),
            ("files", {"/x": {"bytes": 1, "crc32c": 1}}, r"'/x' is no file in it"),
            ("files", [], r"checkpoint\.files is \[\], not of type dict"),
            ("colour", 1, r"checkpoint\.colour is not known"),
        )
    ),
)

_FILE = "run/step-4/mp_rank_00_model_states.pt"
_DAMAGE = (
    _row(
        "",
        "a checkpoint cut short",
        r"run/step-4/mp_rank_00_model_states\.pt is missing or cut short",
        together(trained, cut(_FILE)),
        command=_ALONE,
    ),
    _row(
        "",
        "a checkpoint without its file",
        r"mp_rank_00_model_states\.pt is missing or cut short",
        together(trained, missing(_FILE)),
        command=_ALONE,
    ),
    _row(
        "",
        "a checkpoint with another byte",
        r"run/step-4/mp_rank_00_model_states\.pt is damaged: its checksum "
        r"differs from the list's",
        together(trained, overwritten(_FILE, 200_000, b"\xaa\x55")),
        command=_ALONE,
    ),
    _row(
        "",
        "a list that is no JSON",
        r"run/step-4/whole-00000\.json holds no valid JSON",
        together(trained, cut(_LIST, 5)),
        command=_ALONE,
    ),
)

ROWS = (*_DATA, *_BLANKS, *_RESUMED, *_STATE, *_DAMAGE)
