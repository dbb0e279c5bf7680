from pipelines.inputs.input_file import any_of


def test_archives_of_alternatives_are_told_once() -> None:
    packed = [f"*.{name}{end}" for name in ("json", "txt") for end in ("", ".gz", ".zst", ".bz2")]
    told = "'*.json' or '*.txt', also with .gz, .zst, .bz2, or '*.parquet'"
    assert any_of([*packed, "*.parquet"]) == told
    assert any_of(["*.json", "*.json.gz"]) == "'*.json' or '*.json.gz'"
