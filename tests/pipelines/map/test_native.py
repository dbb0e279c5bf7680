from collections.abc import Sequence
from pathlib import Path

import pytest

from pipelines import compiled
from pipelines.inputs.files import InputFile
from pipelines.map.chain import native_parts
from pipelines.map.compile import compile_all
from pipelines.map.native import native_pays
from tests.pipelines.runs import small

RULES = ("en=gopher-repetition+gopher",)
WORDS = ("zh=fineweb2-zh",)


def files(megabytes: float, name: str = "a.jsonl") -> list[InputFile]:
    size = int(megabytes * 1e6)
    return [InputFile(source="s", path=f"/{name}", relative=name, bytes=size, mtime_ns=0)]


@pytest.mark.parametrize(
    ("kept", "quality", "name", "megabytes", "workers", "pays"),
    [
        (True, (), "a.jsonl", 24, 0, False),
        (True, (), "a.jsonl", 26, 0, True),
        (True, (), "a.jsonl", 49, 2, False),
        (True, (), "a.jsonl.zst", 15, 1, True),
        (True, RULES, "a.jsonl", 7, 1, False),
        (True, RULES, "a.jsonl", 11, 1, True),
        (True, RULES, "a.jsonl", 11, 2, False),
        (True, WORDS, "a.jsonl", 2.4, 1, False),
        (True, WORDS, "a.jsonl", 2.6, 1, True),
        (False, RULES, "a.jsonl", 117, 1, False),
        (False, RULES, "a.jsonl", 119, 1, True),
        (False, RULES, "a.parquet", 79, 2, True),
        (False, WORDS, "a.jsonl", 58, 2, False),
        (False, WORDS, "a.jsonl", 60, 2, True),
        (False, (), "a.jsonl", 124, 1, False),
        (False, (), "a.jsonl", 126, 1, True),
    ],
)
def test_native_loops_have_to_earn_their_start(
    monkeypatch: pytest.MonkeyPatch,
    *,
    kept: bool,
    quality: Sequence[str],
    name: str,
    megabytes: float,
    workers: int,
    pays: bool,
) -> None:
    monkeypatch.setattr(compiled, "available", lambda: True)
    monkeypatch.setattr(compiled, "kept", lambda _: kept)
    options = small(Path("out"), "in", quality=quality)
    assert native_pays(options, files(megabytes, name), workers=workers) == pays
    part = small(Path("out"), "in", quality=quality, part=("1/1000",))
    assert not native_pays(part, files(megabytes, name), workers=workers)


@pytest.mark.slow
def test_what_is_compiled_ahead_is_all_that_runs_use(tmp_path: Path) -> None:
    assert compile_all().startswith("native loops are ready after ")
    for dedup in ("exact", "minhash"):
        options = small(tmp_path / "out", "in", dedup=dedup, quality=(*RULES, *WORDS))
        assert compiled.kept(native_parts(options))
