"""What rethreshold forecasts, compared with runs that were made with the other thresholds."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipelines.run.build import build
from shards.console import run_module
from shards.manifest import Manifest
from shards.windows import glm_windows, num_windows
from tests.pipelines.runs import many_splits, page, small, write_wudao

pytestmark = pytest.mark.slow

main = partial(run_module, "pipelines.rethreshold")

QUALITY = ("zh=glm", "en=gopher")
FIRST = ("zh:glm.min_chars=170", "gopher.min_words=105")


TIGHTER = ("zh:glm.min_chars=200", "gopher.min_words=115", "gopher.min_stop_words=6")
LOOSER = ("zh:glm.min_chars=120", "gopher.min_words=off", "gopher.min_alphabetic_words=0.5")
BOTH = ("zh:glm.min_chars=190", "gopher.min_words=99")
OTHERS = [
    (TIGHTER, 0.97, ("en", "zh"), True),
    (LOOSER, 0.0, ("en", "zh"), False),
    (BOTH, 0.98, ("en", "zh"), False),
    (FIRST, 0.6, ("zh",), True),
    (FIRST, 0.6, ("zh", "en", "ja"), False),
]
"""Bounds, lowest score, languages, and whether tokens are known of all that such a run keeps."""


def make(output: Path, threshold: tuple[str, ...], score: float, **changes: Any) -> Manifest:
    options = many_splits(
        output,
        quality=QUALITY,
        threshold=threshold,
        language_threshold=score,
        **{"split_bytes": 1 << 20, "shards": 2, **changes},
    )
    return build("pipelines.wudao", options)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample with bounds that drop about a third of it."""
    output = tmp_path_factory.mktemp("rethreshold") / "first"
    make(output, FIRST, 0.6)
    return output


def ask(capsys: pytest.CaptureFixture[str], dataset: object, *flags: str) -> dict[str, Any]:
    assert main([str(dataset), "--json", *flags]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def account(manifest: Manifest, source: str = "wudao") -> dict[str, Any]:
    figures: dict[str, Any] = manifest.generations[0].accounting[source]
    return figures


def kept_tokens(manifest: Manifest) -> int:
    return sum(
        shard.tokens for split in ("train", "validation") for shard in manifest.shards(split=split)
    )


def then(block: Mapping[str, Any], figure: str) -> Any:
    return block[figure]["then"]


@pytest.mark.parametrize("other", OTHERS)
def test_a_run_with_the_other_thresholds_comes_to_the_same(
    other: tuple[tuple[str, ...], float, tuple[str, ...], bool],
    dataset: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    threshold, score, languages, exact = other
    # Overrides of the first run hold where they are not overridden.
    rerun = make(tmp_path / "rerun", (*FIRST, *threshold), score, languages=languages)
    flags = ("--language-threshold", str(score), "--languages", ",".join(languages))
    flags += ("--threshold", ",".join(threshold))
    (forecast,) = ask(capsys, dataset, *flags)["sources"].values()
    (real_then,) = ask(capsys, tmp_path / "rerun")["sources"].values()
    before, after = forecast["before_dedup"], real_then["before_dedup"]
    assert then(before, "documents") == then(after, "documents")
    assert then(before, "bytes") == then(after, "bytes")
    assert before["documents"]["exact"]
    assert before["documents"]["now"] != then(before, "documents")
    assert before["tokens"]["exact"] == exact
    slack = 0 if exact else 0.03
    assert then(before, "tokens") == pytest.approx(then(after, "tokens"), rel=slack)
    assert {s["step"]: s["drops"][1] for s in forecast["steps"]} == {
        s["step"]: s["drops"][1] for s in real_then["steps"]
    }
    assert {s["step"]: s["breaks"][1] for s in forecast["steps"]} == {
        s["step"]: s["breaks"][1] for s in real_then["steps"]
    }
    in_dataset = forecast["dataset"]
    assert not in_dataset["documents"]["exact"]
    assert then(in_dataset, "documents") == pytest.approx(account(rerun)["kept"], rel=0.02)
    assert then(in_dataset, "tokens") == pytest.approx(kept_tokens(rerun), rel=0.03)
    windows = num_windows(kept_tokens(rerun), glm_windows(1024).stride)
    assert then(in_dataset, "samples") == pytest.approx(windows, rel=0.05)


def test_what_a_later_stage_would_drop_makes_documents_an_estimate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [page(n) for n in range(40)] + [page(50 + n, "很长的一段话" * 30) for n in range(40)]
    pages += [page(200 + n, "另外的一些话，没有人见过，" * 20) for n in range(20)]
    path = write_wudao(tmp_path / "part-1.json", pages)
    (tmp_path / "benchmark.txt").write_text("很长的一段话" * 30)
    options = small(
        tmp_path / "out",
        path,
        quality=("glm",),
        threshold=("glm.min_chars=200",),
        decontaminate=(str(tmp_path / "benchmark.txt"),),
    )
    made = build("pipelines.wudao", options)
    assert account(made)["dropped"]["contaminated"] == 40
    flags = ("--threshold", "glm.min_chars=100")
    (forecast,) = ask(capsys, tmp_path / "out", *flags)["sources"].values()
    figure = forecast["before_dedup"]["documents"]
    # 40 more texts pass the rules; of those that passed before, 40 of 60 were contaminated.
    assert figure == {"now": 20, "then": 20 + round(40 * 20 / 60), "exact": False}
