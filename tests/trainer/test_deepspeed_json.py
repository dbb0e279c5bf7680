import json
from pathlib import Path
from typing import Any

import pytest

from shards.errors import UserError
from trainer.deepspeed_json import (
    CONFIGS,
    FP16_SECTION,
    adam_of,
    batch_size_of,
    engine_settings,
    micro_batch_of,
    precision_of,
    presets,
    read_json,
    with_precision,
)

CPU, VOLTA, AMPERE = ("fp32", "bf16"), ("fp16", "fp32"), ("bf16", "fp16", "fp32")
ONE: dict[str, Any] = {"zero_optimization": {"stage": 1}}


def write(path: Path, content: object) -> str:
    path.write_text(json.dumps(content))
    return str(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"zero_optimisation": {}}, "not a top-level key .* did you mean 'zero_optimization'"),
        ({"foo": 1}, "'foo' is not a top-level key of DeepSpeed, which would ignore it"),
        ({"scheduler": {}}, "'scheduler' has no place here: .*--schedule"),
        ({"curriculum_learning": {}}, "--data-from"),
        ([1], "is not a JSON object"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_json(write(tmp_path / "ds.json", content))


def test_no_file_and_no_json(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such file, and no preset .* glm-10b, .*glm-large"):
        read_json("glm-9b")
    (tmp_path / "ds.json").write_text("{")
    with pytest.raises(UserError, match="is not valid JSON"):
        read_json(str(tmp_path / "ds.json"))


def test_presets_are_plain_deepspeed() -> None:
    assert set(presets("args")) <= set(presets("json"))
    for name in presets("json"):
        content = read_json(name)
        assert content == read_json(str(CONFIGS / f"{name}.json"))
        assert precision_of(content) == "bf16"
        assert with_precision(content, "fp16", supported=VOLTA)["fp16"] == FP16_SECTION
        assert "bf16" not in with_precision(content, "fp32", supported=CPU)


@pytest.mark.parametrize(
    ("content", "wanted", "supported", "expected"),
    [
        ({}, None, CPU, "fp32"),
        ({}, None, AMPERE, "bf16"),
        ({}, None, VOLTA, "fp16"),
        ({}, "auto", VOLTA, "fp16"),
        ({"bf16": {"enabled": True}, **ONE}, None, AMPERE, "bf16"),
        ({"bf16": {"enabled": True}, **ONE}, "fp16", VOLTA, "fp16"),
        ({"bf16": {"enabled": False}}, None, AMPERE, "fp32"),
        ({"fp16": {"enabled": True}, **ONE}, "fp32", CPU, "fp32"),
    ],
)
def test_precision(
    content: dict[str, Any], wanted: str | None, supported: tuple[str, ...], expected: str
) -> None:
    settings = with_precision(content, wanted, supported=supported)
    assert (precision_of(settings) or "fp32") == expected
    if expected != "fp32":
        assert settings["zero_optimization"]["stage"] == 1


def test_precision_that_cannot_be() -> None:
    with pytest.raises(UserError, match=r"does not compute in bf16.*--precision fp16"):
        with_precision({"bf16": {"enabled": True}}, None, supported=VOLTA)
    with pytest.raises(UserError, match="bf16 needs ZeRO stage 1 or more"):
        with_precision({"zero_optimization": {"stage": 0}}, "bf16", supported=AMPERE)
    with pytest.raises(UserError, match="both bf16 and fp16"):
        precision_of({"bf16": {"enabled": True}, "fp16": {"enabled": True}})


@pytest.mark.parametrize(
    ("content", "wanted", "size", "world", "expected"),
    [
        ({}, None, 16, 2, 8),
        ({}, 2, 16, 2, 2),
        ({"train_micro_batch_size_per_gpu": 4}, None, 16, 2, 4),
        ({"train_micro_batch_size_per_gpu": 4}, 1, 16, 2, 1),
        ({"gradient_accumulation_steps": 4}, None, 16, 2, 2),
        ({"gradient_accumulation_steps": "auto"}, None, 16, 2, 8),
    ],
)
def test_micro_batch(
    content: dict[str, Any], wanted: int | None, size: int, world: int, expected: int
) -> None:
    assert micro_batch_of(content, wanted, sizes=(size,), world=world) == expected
    settings = engine_settings(content, micro=expected, size=size, world=world, node_local=False)
    steps = settings["gradient_accumulation_steps"]
    assert expected * steps * world == settings["train_batch_size"] == size


def test_a_batch_that_does_not_work_out() -> None:
    with pytest.raises(UserError, match=r"\(micro-batch 4\).*\(3 ranks\).*--batch-size 96"):
        micro_batch_of({}, 4, sizes=(100,), world=3)
    with pytest.raises(UserError, match="a global batch of 20 "):
        micro_batch_of({}, 8, sizes=(16, 20), world=1)
    contradicting = {"gradient_accumulation_steps": 2}
    with pytest.raises(UserError, match=r"gradient_accumulation_steps 2, but .* takes 4"):
        micro_batch_of(contradicting, 4, sizes=(16,), world=1)


def test_batch_size_of() -> None:
    assert batch_size_of({}, None, world=2) is None
    assert batch_size_of({}, 4, world=2) == 8
    whole = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3}
    assert batch_size_of(whole, None, world=2) == 24
    assert batch_size_of({**whole, "train_batch_size": 99}, None, world=2) == 99


def test_engine_settings_leave_the_optimizer_to_us() -> None:
    settings = engine_settings(
        {**ONE, "optimizer": {"type": "AdamW"}}, micro=1, size=1, world=1, node_local=True
    )
    assert "optimizer" not in settings
    assert settings["gradient_clipping"] == 1.0
    assert settings["checkpoint"] == {"use_node_local_storage": True}


def test_adam_of() -> None:
    params = {"lr": 1e-3, "betas": [0.9, 0.98], "torch_adam": True}
    assert adam_of({"optimizer": {"type": "Adam", "params": params}}) == {
        "lr": 1e-3,
        "betas": [0.9, 0.98],
    }
    assert adam_of({}) == {}
    with pytest.raises(UserError, match="asks for the optimizer 'Lamb'"):
        adam_of({"optimizer": {"type": "Lamb"}})
