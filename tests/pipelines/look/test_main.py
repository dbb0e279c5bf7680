import json
from functools import partial
from pathlib import Path

import pytest

from shards.console import run_module
from tests.pipelines.look.shapes import of_corpus

main = partial(run_module, "pipelines.look")


def test_several_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [of_corpus("wudao", tmp_path / "a"), of_corpus("pile", tmp_path / "b")]
    assert main([*map(str, paths)]) == 0
    out = capsys.readouterr().out
    assert out.index("corpus    wudao") < out.index(f"\n\n{paths[1]}") < out.index("corpus    pile")


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = of_corpus("wudao", tmp_path)
    (tmp_path / "b.json").write_text('["no object"]')
    assert main([str(tmp_path), "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert seen["kinds"] == [
        {
            "ending": ".json",
            "files": 2,
            "bytes": path.stat().st_size + 13,
            "format": "json",
            "records": 3,
            "untaken": None,
        }
    ]
    assert [field["name"] for field in seen["fields"]][-2:] == ["title", "content"]
    assert (seen["text_field"], seen["corpora"]["wudao"]) == ("content", 1.0)
    assert [fault["path"] for fault in seen["faults"]] == [str(tmp_path / "b.json")]
    assert seen["command"].startswith("python -m pipelines.wudao --input ")


def test_nothing_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_corpus("wudao", tmp_path / "wudao")
    assert main([str(tmp_path / "wudoa")]) == 2
    assert f"did you mean {tmp_path / 'wudao'}?)" in capsys.readouterr().err
    assert main([]) == 2


def test_something_can_be_said_of_what_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\xd5\xe2\xca\xc7\n")
    assert main([str(tmp_path)]) == 0
    assert "holds no JSON lines" in capsys.readouterr().out
