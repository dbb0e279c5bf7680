import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from shards.errors import DamageError, UserError
from trainer.weights.safetensors import INDEX, WHOLE, SafeTensors, write_safetensors

VALUES = {
    "a": torch.arange(6.0).view(2, 3),
    "b.c": torch.tensor([-1.5, 0.0, 3e9]),
    "one": torch.tensor(7.0),
}


def write(path: Path, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    values = {name: value.to(dtype) for name, value in VALUES.items()}
    shapes = {name: value.shape for name, value in values.items()}
    # Laid out the other way round, as a transposed matrix is.
    write_safetensors(path, shapes, lambda n: values[n].t().clone().t(), dtype=dtype)
    return values


def assert_equal(found: dict[str, Tensor] | SafeTensors, expected: dict[str, Tensor]) -> None:
    assert [*found] == [*expected]
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_their_library_and_ours_read_what_ours_wrote(tmp_path: Path, dtype: torch.dtype) -> None:
    values = write(tmp_path / WHOLE, dtype)
    assert_equal(dict(sorted(load_file(tmp_path / WHOLE).items())), dict(sorted(values.items())))
    assert_equal(SafeTensors(tmp_path), values)


def test_ours_reads_what_their_library_wrote(tmp_path: Path) -> None:
    values = {name: value.half() for name, value in VALUES.items() if name != "b.c"}
    save_file(values, tmp_path / "any.safetensors")
    found = SafeTensors(tmp_path / "any.safetensors")
    assert len(found) == 2
    assert_equal({name: found[name] for name in values}, values)


def test_an_index_names_the_files(tmp_path: Path) -> None:
    save_file({"x": VALUES["a"]}, tmp_path / "1.safetensors")
    save_file({"y": VALUES["one"]}, tmp_path / "2.safetensors")
    files = {"x": "1.safetensors", "y": "2.safetensors"}
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": files}))
    assert_equal(SafeTensors(tmp_path), {"x": VALUES["a"], "y": VALUES["one"]})
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"x": "../1.safetensors"}}))
    with pytest.raises(DamageError, match=r"index\.json is no file .* names no files beside it"):
        SafeTensors(tmp_path)


def test_a_type_that_holds_no_weights(tmp_path: Path) -> None:
    save_file({"x": torch.arange(3), "y": torch.ones(2)}, tmp_path / WHOLE)
    found = SafeTensors(tmp_path)
    assert torch.equal(found["y"], torch.ones(2))
    with pytest.raises(UserError, match=r"of type 'I64'; expected .* F32, .* without quantization"):
        found["x"]


def header(content: object) -> bytes:
    text = json.dumps(content).encode()
    return len(text).to_bytes(8, "little") + text


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"\0\0", r"was cut short: copy it again"),
        (b"\xff" * 16, r"is no safetensors file, or was cut short"),
        (header({"a": ENTRY})[:20], r"is no safetensors file, or was cut short"),
        (header({"a": ENTRY}) + bytes(7), r"bytes 0 to 8 lie outside"),
        (header({"a": {**ENTRY, "shape": [3]}}) + bytes(8), r"8 bytes are no F32 of \[3\]"),
        (header({"a": {**ENTRY, "shape": [-1, -2]}}) + bytes(8), r"\[-1, -2\] is no shape"),
        (header({"a": {**ENTRY, "shape": [2**70, 0]}}), rf"\[{2**70}, 0\] is no shape"),
        (header({"a": {**ENTRY, "shape": [2**40, 2**40, 0]}}), r"0\] is no shape"),
        (header({"a": {**ENTRY, "shape": [2**40, 2**40]}}) + bytes(8), r"\] is no shape"),
        (header({"a": {**ENTRY, "data_offsets": [-8, 0]}}) + bytes(8), r"-8 to 0 lie outside"),
        (header({"a": {"dtype": "F32"}}) + bytes(8), r"is no file of safetensors.*'shape'"),
        (header([1]) + bytes(8), r"is no file of safetensors, or was damaged"),
        (b"\x04" + bytes(7) + b"\xff\xfe{}" + bytes(8), r"is no file of safetensors"),
    ],
)
def test_damage(tmp_path: Path, content: bytes, complaint: str) -> None:
    (tmp_path / WHOLE).write_bytes(content)
    with pytest.raises(DamageError, match=complaint):
        SafeTensors(tmp_path)


def test_tensors_without_elements(tmp_path: Path) -> None:
    values = {"rows": torch.ones(0, 3), "columns": torch.ones(3, 0, dtype=torch.bfloat16)}
    save_file(values, tmp_path / WHOLE)
    found = SafeTensors(tmp_path)
    assert_equal({name: found[name] for name in values}, values)
    shapes = {"rows": values["rows"].shape}
    write_safetensors(tmp_path / "ours", shapes, values.__getitem__, dtype=torch.float32)
    assert_equal(load_file(tmp_path / "ours"), {"rows": values["rows"]})


def test_a_folder_without_any(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds neither model\.safetensors nor"):
        SafeTensors(tmp_path)
