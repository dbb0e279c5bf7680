"""Damages files of unfinished runs, complete datasets, and inputs.

Guarantee: Damage is found: sizes when a shard is opened, checksums by `verify`.
"""

import json
import os
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from shards.exports.formats import FORMATS
from shards.reader import Dataset
from tests.pipelines.mutations import harmed
from tests.pipelines.trial import error_in_child
from tests.shards.datasets import sealed
from tests.soak.case import Case, NoDocuments, file_hashes, flags_of, hashes_and_figures
from tests.soak.check import Failure, check_dataset, check_equal
from tests.soak.growth import remove_some
from tests.soak.readers import read_windows
from tests.soak.scenario import Scenario

_STEP = "shards trace --data {data} --batch-size 4 --length 128"
_READERS = (
    "shards inspect {data}",
    "shards inspect {data} --doc {number}",
    "shards inspect {data} --doc {number} --split validation",
    "shards stats {data}",
    "shards place {data} --check",
    "shards place {data} --to {new}",
    *(f"shards export {{data}} --output {{new}} --to {form}" for form in FORMATS),
    "shards megatron {data}",
    f"{_STEP} --step {{number}}",
    f"{_STEP} --objective causal --step {{number}}",
    f"{_STEP} --until 9 --document {{name}}",
    "shards remove {data} --url https://* --id {name} --missing-ok --dry-run",
    "shards remove {data} --id {name} --missing-ok --reason asked",
    "shards compact {data}",
    "shards compact {data} --erase",
    "shards prune {data} --days 0",
    "pipelines.rethreshold {data}",
    "pipelines.report {data} --output {new}",
)
"""Commands, besides runs and training, that read a dataset."""


def damage_file(case: Case, path: Path, others: Sequence[Path] = ()) -> str:
    """Damage a file in a random way; return the name of the way, or "" if the file is unchanged.

    Args:
        case: The case.
        path: The file; if it is a hard link, the content of its other links does not change.
        others: Files whose content may replace the file's content.
    """
    rng, before, after = case.rng, path.read_bytes(), None
    way = rng.choice(("remove", *["swap"] * bool(others), *["change"] * 6))
    if way == "swap":
        after = rng.choice(others).read_bytes()
    elif way == "change":
        way, after = harmed(before, rng)
    case.note(way, path)
    path.unlink()
    if after is not None:
        path.write_bytes(after)
    return "" if after == before else way


def damage_work(case: Case) -> None:
    """Damage files of an unfinished run, then repeat the command."""
    scenario = case.scenario()
    case.choose_sizes()
    words = flags_of(scenario)
    expected = case.undisturbed(words)
    output = case.folder / "out"
    case.run_killed(*words, "--output", output, first=4, last=512)
    (output / "manifest.json").unlink(missing_ok=True)
    left = [
        path
        for path in sorted(output.rglob("*"))
        if path.is_file() and path.stat().st_size and path.name != ".lock"
    ]
    for path in case.rng.sample(left, min(len(left), case.rng.choice((1, 2, 5, 20)))):
        damage_file(case, path)
    finish(case, scenario, output, expected)


def finish(case: Case, scenario: Scenario, output: Path, expected: dict[str, str]) -> None:
    """Repeat a command, and check that the dataset has the bytes of an uninterrupted run."""
    case.succeed(*flags_of(scenario, output=output))
    check_equal("bytes after the disturbance", hashes_and_figures(output), expected)
    left = [path for path in output.rglob(".tmp-*")]
    check_equal("half-written files", left, [])
    check_dataset(output, scenario)


def damage_dataset(case: Case) -> None:
    """Damage files of a dataset: verify reports them, and every reader ends properly."""
    rng = case.rng
    scenario = case.scenario(small=True)
    scenario.options.values["keep_dropped"] = True
    output, copy = case.folder / "out", case.folder / "harmed"
    case.succeed(*flags_of(scenario, output=output))
    if scenario.add_files(scenario.sources[0], 1, records=20):
        case.succeed(*flags_of(scenario, output=output, append=True))
    remove_some(case, output)
    scenario.add_files(scenario.sources[0], 1, records=5)
    before = file_hashes(output)
    kinds: dict[str, list[str]] = {}
    for path in sorted(output.rglob("*")):
        if path.is_file() and path.stat().st_size and path.name not in (".lock", "report.html"):
            name = path.relative_to(output).as_posix()
            kinds.setdefault(_kind(name), []).append(name)
    for kind in rng.choices([*kinds], k=6):
        name = rng.choice(kinds[kind])
        shutil.copytree(output, copy, copy_function=os.link)
        others = [copy / other for other in rng.choice([*kinds.values()]) if other != name]
        way = damage_file(case, copy / name, others)
        if way:
            if not (name == "manifest.json" and rng.random() < 0.5 and _seal(copy / name)):
                _verify(case, copy, name if _is_changed(copy, output, name, before) else "", way)
            _read(case, scenario, copy)
        shutil.rmtree(copy)
    check_equal("the dataset from which the damaged one was copied", file_hashes(output), before)


def _kind(name: str) -> str:
    """Return the kind of a file of a dataset: its folder, ending or name."""
    path = PurePath(name)
    tables = ("audit", "rejects", "signatures", "dropped", "removals")
    named = path.parts[-2] if len(path.parts) > 1 else path.name
    return named if named in tables or len(path.parts) == 1 else path.suffix


def _is_changed(copy: Path, output: Path, name: str, listed: Collection[str]) -> bool:
    """Return whether the damage changed a file of the dataset; white space in JSON is no change."""
    with suppress(OSError, ValueError):
        return name in listed and json.loads((copy / name).read_bytes()) != json.loads(
            (output / name).read_bytes()
        )
    return name in listed


def _seal(manifest: Path) -> bool:
    """Update the hash in a damaged manifest that is still JSON; return whether it is."""
    with suppress(OSError, ValueError):
        content = json.loads(manifest.read_bytes())
        if isinstance(content, dict) and "sha256" in content:
            manifest.write_text(json.dumps(sealed(content)))
            return True
    return False


def _verify(case: Case, copy: Path, name: str, way: str) -> None:
    """Check that verify names a damaged file if the file belongs to the dataset."""
    done = case.run("shards", "verify", copy)
    refused = name == "manifest.json" and done.code == 2
    if name and not refused and (done.code != 1 or PurePath(name).name not in done.output):
        raise Failure(f"verify does not name {name} ({way}): {done.code} {done.output[-600:]}")


def _read(case: Case, scenario: Scenario, copy: Path) -> None:
    """Run some readers on a damaged dataset; each must succeed or refuse with a message."""
    rng, new = case.rng, case.folder / "new"
    file = rng.choice(scenario.inputs)
    name = f"{file.relative}:{rng.choice(file.rows).position if file.rows else 0}"
    names = {"data": copy, "new": new, "number": rng.randrange(20), "name": name}
    commands = [[part.format(**names) for part in words.split()] for words in _READERS]
    for more in ({"append": True}, {}):
        commands.append(flags_of(scenario, output=copy, **more))
    last_line = error_in_child(lambda: read_windows(Dataset.open(copy)))
    if last_line.startswith("cannot be loaded"):
        raise Failure(f"training {last_line}")
    for words in rng.sample(commands, 3):
        case.run(*words)
        if new.is_dir():
            shutil.rmtree(new)
        else:
            new.unlink(missing_ok=True)


def damage_input(case: Case) -> None:
    """Damage input files: they are refused, or only the damaged records are lost."""
    scenario = case.scenario(small=True)
    scenario.options.values.pop("sample", None)  # --sample would also choose among damaged records
    output = case.folder / "out"
    words = flags_of(scenario, output=output)
    case.succeed(*words)
    whole, known = file_hashes(output), _named(output)
    for _ in range(4):
        path = case.rng.choice(scenario.inputs).path
        before = path.read_bytes()
        way, after = harmed(before, case.rng)
        case.note(way, path)
        path.write_bytes(after)
        shutil.rmtree(output)
        with suppress(NoDocuments):
            done = case.run(*words)
            checked = path.suffix in (".gz", ".bz2", ".xz") and not done.code
            if checked and file_hashes(output) != whole and _named(output) <= known:
                raise Failure(f"the change of {path} was not reported ({way})")
        path.write_bytes(before)
        output.mkdir(exist_ok=True)


def _named(output: Path) -> int:
    """Return the number of files that a report lists as omitted or truncated."""
    report = json.loads((output / "report.json").read_bytes())
    return len(report["left_out"]) + len(report["cut"])
