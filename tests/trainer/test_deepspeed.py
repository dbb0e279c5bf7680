import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.errors import UserError
from trainer.deepspeed import (
    CONFIGS,
    FP16_SECTION,
    SECTIONS,
    adam_of,
    batch_size_of,
    parse_settings,
    precision_of,
    presets,
    read_json,
    with_precision,
)

CPU, VOLTA, AMPERE = ("fp32", "bf16"), ("fp16", "fp32"), ("bf16", "fp16", "fp32")
AUTO = {"enabled": "auto", "loss_scale": 0}
ONE: dict[str, Any] = {"zero_optimization": {"stage": 1}}


def write(path: Path, content: object) -> str:
    path.write_text(json.dumps(content))
    return str(path)


def test_presets_are_plain_deepspeed() -> None:
    assert set(presets("args")) <= set(presets("json"))
    for name in presets("json"):
        content = read_json(name)
        assert content == read_json(str(CONFIGS / f"{name}.json"))
        # The published fine-tuning run, which this repeats exactly.
        is_fp16 = name == "finetune-10b"
        assert precision_of(content) == ("fp16" if is_fp16 else "bf16")
        section = content["fp16"] if is_fp16 else FP16_SECTION
        assert with_precision(content, "fp16", supported=VOLTA)["fp16"] == section
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
        ({"bf16": AUTO, "fp16": AUTO, **ONE}, None, CPU, "fp32"),
        ({"bf16": AUTO, "fp16": AUTO, **ONE}, None, AMPERE, "bf16"),
        ({"fp16": AUTO, **ONE}, None, VOLTA, "fp16"),
        ({"fp16": AUTO, **ONE}, None, AMPERE, "bf16"),
    ],
)
def test_precision(
    content: dict[str, Any], wanted: str | None, supported: tuple[str, ...], expected: str
) -> None:
    settings = with_precision(parse_settings(content, where="x"), wanted, supported=supported)
    assert (precision_of(settings) or "fp32") == expected
    if expected != "fp32":
        assert settings["zero_optimization"]["stage"] == 1


REFERENCE: Mapping[str, Any] = {
    "train_micro_batch_size_per_gpu": 3,
    "gradient_accumulation_steps": 1,
    "steps_per_print": 50,
    "gradient_clipping": 1.0,
    "zero_allow_untested_optimizer": True,
    "fp16": {**FP16_SECTION, "enabled": True},
    "optimizer": {
        "type": "Adam",
        "params": {"lr": 5e-6, "betas": [0.9, 0.9], "eps": 1e-8, "weight_decay": 1e-2},
    },
    "activation_checkpointing": {
        "partition_activations": False,
        "contiguous_memory_optimization": False,
    },
    "wall_clock_breakdown": False,
}
"""Settings as in THUDM/GLM's files in config/ and config_tasks/, but with different numbers."""

OFFLOADING = {"stage": 2, "overlap_comm": True, "allgather_bucket_size": 5e7, "cpu_offload": True}
"""Settings as in THUDM/GLM's files for fine-tuning."""
AUTO_VALUES: Mapping[str, Any] = {"train_batch_size": "auto", "bf16": {"enabled": "auto"}}


def test_the_files_of_the_reference_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(
        tmp_path / "glm.json", {**REFERENCE, **AUTO_VALUES, "zero_optimization": OFFLOADING}
    )
    content = read_json(path)
    assert content.pop("zero_optimization") == {
        "stage": 2,
        "overlap_comm": True,
        "allgather_bucket_size": 50_000_000,
        "offload_optimizer": {"device": "cpu"},
    }
    assert content == {
        name: value for name, value in REFERENCE.items() if name != "activation_checkpointing"
    }
    assert precision_of(with_precision(content, None, supported=VOLTA)) == "fp16"
    assert adam_of(content) == REFERENCE["optimizer"]["params"]
    assert batch_size_of(content, None, world=2) == 6
    assert caplog.messages == [
        f"{path}: activation_checkpointing is ignored: --checkpoint-activations recomputes layers "
        "here"
    ]


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just([]), st.just({})
)


@given(section=st.sampled_from(SECTIONS), name=st.text(), value=LEAVES)
def test_whatever_stands_there_is_refused_in_one_paragraph_or_kept(
    section: str, name: str, value: Any
) -> None:
    for content in ({section: {name: value}}, {section: value}, {name: value}):
        with suppress(UserError):
            assert parse_settings(content, where="ds.json") in (content, {section: {}}, {})
