from pipelines.inputs.found_file import any_of, some_of


def test_a_few_names_stand_for_many() -> None:
    assert some_of(["a", "b"]) == "a, b"
    assert some_of([*"abcde"]) == "a, b, c, d, e"
    assert some_of([*"abcdefg"]) == "a, b, c, d, e and 2 more"


def test_alternatives_are_quoted() -> None:
    assert any_of(["*.gz", "*.zst"]) == "'*.gz' or '*.zst'"
