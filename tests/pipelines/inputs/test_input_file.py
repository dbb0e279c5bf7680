from pipelines.inputs.input_file import any_of, some_of


def test_a_few_names_stand_for_many() -> None:
    assert some_of(["a", "b"]) == "a, b"
    assert some_of([*"abcde"]) == "a, b, c, d, e"
    assert some_of([*"abcdefg"]) == "a, b, c, d, e and 2 more"


def test_alternatives_are_quoted() -> None:
    assert any_of(["*.gz", "*.zst"]) == "'*.gz' or '*.zst'"


def test_archives_of_alternatives_are_told_once() -> None:
    packed = [f"*.{name}{end}" for name in ("json", "txt") for end in ("", ".gz", ".zst", ".bz2")]
    told = "'*.json' or '*.txt', also with .gz, .zst, .bz2, or '*.parquet'"
    assert any_of([*packed, "*.parquet"]) == told
    assert any_of(["*.json", "*.json.gz"]) == "'*.json' or '*.json.gz'"
