import dataclasses
from pathlib import Path
from typing import Any

import pytest

from pipelines.inputs.files import InputFile
from pipelines.run import existing
from shards.errors import UserError
from shards.manifest import Generation, InputEntry, Manifest, TableEntry, TokenizerEntry
from shards.storage.files import crc32c_of, write_json
from tests.pipelines.mapped import CONTENT, READING, SPLIT_BYTES, matched, splits, touch


def test_leftovers_of_killed_attempts_go_and_nothing_else(tmp_path: Path) -> None:
    mark, task, run = (digit * 32 for digit in "123")
    folder, task = "g0001-00aa", task[:24]
    stay = ["manifest.json", f"{folder}/s/00000.bin", f".work/map/{task}.json"]
    stay += [f"mine/.tmp-{mark}-manifest.json", ".tmp-1-manifest.json", f".tmp-{mark}-thesis.txt"]
    stay += [".work/progress/thesis.txt", ".work/attempts/thesis.txt", f"{folder}/.tmp-x"]
    gone = [f".tmp-{mark}-manifest.json", f"{folder}/s/.tmp-{mark}-00000.bin"]
    gone += [f".work/map/.tmp-{mark}-{task}.documents", f".work/attempts/{task}-{run}-{mark}.json"]
    gone += [f".work/progress/{run}.json", f".work/progress/{run}.tmp"]
    for name in (*stay, *gone):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    existing.remove_leftovers(tmp_path)
    left = [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()]
    assert sorted(left) == sorted(stay)


def manifest(options: dict[str, Any], *inputs: InputEntry) -> Manifest:
    table = TableEntry(path="v", rows=1, bytes=1, crc32c=1)
    generation = Generation(
        number=1,
        name="g",
        fingerprint="f",
        inputs=inputs,
        sources={},
        audit=(),
        signatures=(),
        rejects=(),
        accounting={},
    )
    tokenizer = TokenizerEntry(
        spec="s", name="n", sha256="0", pieces=1, vocabulary_size=1, dtype="uint16", special={}
    )
    return Manifest(
        number=1,
        lineage="l",
        corpus="c",
        options=options,
        tokenizer=tokenizer,
        vocabulary=table,
        libraries={},
        generations=(generation,),
    )


def test_a_dataset_is_continued_with_its_own_options_alone(tmp_path: Path) -> None:
    had = {"seed": 0, "languages": ["zh", "en"], "title": "always"}
    existing.check_options(manifest(had), dict(had), output=tmp_path, advice="Do.")
    now = {"seed": 0, "languages": ["zh"], "min_chars": 5}
    with pytest.raises(UserError) as raised:
        existing.check_options(manifest(had), now, output=tmp_path, advice="Do that.")
    text = str(raised.value)
    assert "--languages is zh, the dataset has zh,en; " in text
    assert "--min-chars is 5, the dataset has nothing; " in text
    assert "--title is nothing, the dataset has always. " in text
    assert "--seed" not in text
    assert text.endswith(" Do that.")


@pytest.mark.parametrize(
    ("quality", "threshold", "says"),
    [
        (("gopher", 60.0), (), "--quality is gopher, the dataset has glm. "),
        (("glm", 60.0), ("glm.min_chars=60",), "--threshold is glm.min_chars=60, the dataset has "),
        (("glm", 60.0), (), "--quality is glm.min_chars=60, the dataset has glm.min_chars=50. "),
    ],
)
def test_quality_is_named_as_flags_name_it(
    quality: tuple[str, float], threshold: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    def made(profile: str, least: float, *overrides: str) -> dict[str, Any]:
        bounds = {"*": [{"profile": profile, "bounds": {"min_chars": least, "max_x": 1.0}}]}
        return {
            "quality": {"profiles": [profile], "bounds": bounds},
            "threshold": list(overrides),
        }

    had = manifest(made("glm", 50.0))
    with pytest.raises(UserError) as raised:
        existing.check_options(had, made(*quality, *threshold), output=tmp_path, advice="Do.")
    assert f"other options: {says}" in str(raised.value)


def test_files_are_called_by_their_names(tmp_path: Path) -> None:
    """The tokenizer by kind, file and size; where two files have one name, by their hashes too."""
    had: dict[str, Any] = {"tokenizer": "0" * 64, "lid_model": "1" * 64, "url_blocklist": "2" * 64}
    now = {"tokenizer": "a" * 64, "lid_model": "b" * 64, "url_blocklist": "c" * 64}
    made = manifest(had)
    ours = dataclasses.replace(made.tokenizer, spec="hf", vocabulary_size=50_000, sha256="a" * 64)
    same = dataclasses.replace(made.tokenizer, sha256="a" * 64)

    def told(tokenizer: TokenizerEntry, *given: dict[str, Any]) -> str:
        files = existing.Files(tokenizers=(tokenizer, made.tokenizer), given=(given[0], given[1]))
        with pytest.raises(UserError) as raised:
            existing.check_options(made, now, output=tmp_path, advice="Do.", files=files)
        return str(raised.value)

    given = {"lid_model": "", "url_blocklist": ("a.txt", "b.txt")}
    text = told(ours, given, {"lid_model": "my.bin", "url_blocklist": ("a.txt",)})
    assert "--tokenizer is hf:n (50,000 ids), the dataset has s:n (1 ids); " in text
    assert "--lid-model is the default, the dataset has my.bin; " in text
    assert "--url-blocklist is a.txt,b.txt, the dataset has a.txt. " in text
    text = told(same, given, given)
    assert "--tokenizer is s:n (1 ids) (a file of SHA-256 aaaaaaaa…), the dataset has" in text
    assert "--lid-model is bbbbbbbb…, the dataset has 11111111…; " in text


def entry(file: Path, **changes: Any) -> InputEntry:
    sums = tuple(crc32c_of(CONTENT[split.start : split.end]) for split in splits(file))
    found = InputEntry(source="s", path="a.json", bytes=len(CONTENT), crc32c=sums)
    return dataclasses.replace(found, **changes)


def check(output: Path, file: Path, *entries: InputEntry) -> None:
    existing.check_inputs(
        manifest({}, *entries),
        [matched(file)],
        readings={"s": READING},
        split_bytes=SPLIT_BYTES,
        output=output,
    )


@pytest.mark.parametrize("whole", [False, True])
def test_a_dataset_of_the_same_bytes_is_complete(tmp_path: Path, file: Path, whole: bool) -> None:
    sums = {"crc32c": (crc32c_of(CONTENT),)} if whole else {}
    check(tmp_path, file, entry(file, **sums))
    touch(file)
    check(tmp_path, file, entry(file, **sums))


def test_a_file_of_the_same_time_is_not_read_again(tmp_path: Path, file: Path) -> None:
    times = [{"source": "s", "path": "a.json", "mtime_ns": file.stat().st_mtime_ns}]
    write_json(tmp_path / existing.INPUTS, times)
    wrong = entry(file, crc32c=(1, 2, 3))
    check(tmp_path, file, wrong)
    touch(file)
    with pytest.raises(UserError, match=r"s/a\.json has changed \(1 files differ\)"):
        check(tmp_path, file, wrong)


def test_a_file_of_the_same_etag_is_not_read_again(
    tmp_path: Path, file: Path, remote: InputFile
) -> None:
    def leave_etag(etag: str) -> None:
        told = {"source": "s", "path": "a.json", "mtime_ns": 0, "etag": etag}
        write_json(tmp_path / existing.INPUTS, [told])

    def check_remote(*entries: InputEntry) -> None:
        existing.check_inputs(
            manifest({}, *entries),
            [remote],
            readings={"s": READING},
            split_bytes=SPLIT_BYTES,
            output=tmp_path,
        )

    leave_etag(remote.etag)
    check_remote(entry(file, crc32c=(1, 2, 3)))
    leave_etag("other")
    check_remote(entry(file))
    with pytest.raises(UserError, match=r"s/a\.json has changed"):
        check_remote(entry(file, crc32c=(1, 2, 3)))


def test_other_inputs_are_told_by_the_first(tmp_path: Path, file: Path) -> None:
    with pytest.raises(UserError, match=r"s/a\.json is new \(1 files differ\)\. Give --append"):
        check(tmp_path, file)
    with pytest.raises(UserError, match=r"s/0\.json is gone \(2 files differ\)"):
        check(tmp_path, file, entry(file, path="0.json"))
    with pytest.raises(UserError, match=r"s/a\.json has changed"):
        check(tmp_path, file, entry(file, bytes=7))
