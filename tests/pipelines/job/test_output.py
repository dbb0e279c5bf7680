from pathlib import Path

import pytest

from pipelines.job.build import build
from pipelines.job.output import check_apart
from shards.errors import UserError
from shards.storage.remote import AnyPath, any_path
from tests.pipelines.runs import MODULE, page, small, write_wudao


def put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def check(spec: str, output: AnyPath, *, because: str) -> None:
    """Check that an input and output are refused because of a reason, or accepted if it is ""."""
    if not because:
        check_apart(spec, output)
        return
    with pytest.raises(UserError, match=because) as raised:
        check_apart(spec, output)
    assert "\n" not in str(raised.value)


LIES_IN_INPUT = "the output .* is in the input"
LIES_IN_OUTPUT = "the input .* is the output .*, or is in it"


@pytest.mark.parametrize(
    ("spec", "output", "because"),
    [
        ("in", "in", LIES_IN_OUTPUT),
        ("in", "in/out", LIES_IN_INPUT),
        ("in", ".", LIES_IN_OUTPUT),
        ("in/a.json", "in", LIES_IN_OUTPUT),
        ("in/*.json", "in", LIES_IN_OUTPUT),
        ("in/*/*.json", "in/out", LIES_IN_INPUT),
        ("in/**/*.json", "in/out", LIES_IN_INPUT),
        ("in/**/*.[h]ashes", "in/out", LIES_IN_INPUT),
        ("in/*/.lock", "in/out", LIES_IN_INPUT),
        ("w[1]/in", "w[1]", LIES_IN_OUTPUT),
        ("in", "out", ""),
        ("in", "in-out", ""),
        ("in/a.json", "in/out", ""),
        ("in/*.json", "in/out", ""),
        ("in/s*/*.json", "in/out", ""),
        ("in/*/*.jsonl", "in/out", ""),
        ("in/**/part-*.jsonl.gz", "in/out", ""),
        ("w[1]/in", "w1", ""),
        ("w[1]/in", "w[1]/out", ""),
        ("missing", "in", ""),
        ("in\0", "in", ""),
    ],
)
@pytest.mark.parametrize("through", ["real", "link"])
def test_paths(tmp_path: Path, spec: str, output: str, because: str, through: str) -> None:
    put(tmp_path / "real", "in/a.json", "in/sub/b.json", "w[1]/in/a.json")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    check(str(tmp_path / "real" / spec), tmp_path / through / output, because=because)


def test_a_glob_begins_after_the_folder_it_is_given_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "w[1]/in/a.json", "w1/b.json")
    monkeypatch.chdir(tmp_path / "w[1]")
    check("in/*.json", tmp_path / "w[1]", because=LIES_IN_OUTPUT)
    check_apart("in/*.json", tmp_path / "w1")
    check_apart("*/*/*.json", tmp_path / "w1" / "out")


def test_the_names_of_a_run_are_known(tmp_path: Path) -> None:
    write_wudao(tmp_path / "in" / "part-1.json", [page(number) for number in range(5)])
    build(MODULE, small(tmp_path / "out", tmp_path / "in", keep_segments=True))
    names = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert any(name.endswith(".tokens") for name in names)
    for name in names:
        check(str(tmp_path / "*" / name), tmp_path / "new", because=LIES_IN_INPUT)


@pytest.mark.parametrize(
    ("spec", "output", "because"),
    [
        ("s3://bucket/in", "s3://bucket/in", LIES_IN_OUTPUT),
        ("s3://bucket/in/", "s3a://bucket/in/out", LIES_IN_INPUT),
        ("S3://bucket//in/*/x", "s3://bucket/in/out", LIES_IN_INPUT),
        ("gs://bucket/in/**", "gcs://bucket/in/a/b", LIES_IN_INPUT),
        ("s3://bucket/in", "s3://bucket/in2", ""),
        ("s3://bucket/in", "gs://bucket/in", ""),
        ("s3://bucket/*/*.jsonl", "s3://bucket/out", ""),
        ("hf:owner/name", "in", ""),
    ],
)
def test_addresses(spec: str, output: str, because: str) -> None:
    check(spec, any_path(output), because=because)
