import pyarrow as pa
import pytest

from pipelines.corpus.options import Options
from pipelines.corpus.recipe import CORPORA, SAMPLE, always, load_recipe, strings
from pipelines.readers.reading import Reading


def test_columns_and_readings_that_no_option_changes() -> None:
    columns = strings("id", "url")
    assert columns(Options()) == {"id": pa.large_string(), "url": pa.large_string()}
    reading = Reading(text_fields=("body",))
    assert always(reading)(Options(seed=7)) is reading


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus_is_loaded_by_the_name_of_its_module(name: str) -> None:
    recipe = load_recipe(f"pipelines.{name}")
    options = recipe.options()
    assert recipe.name == name
    assert isinstance(recipe.reading(options), Reading)
    assert recipe.group in ("", *recipe.provenance(options))


def test_the_sample_is_part_of_the_package() -> None:
    assert (SAMPLE / "sample.model").is_file()
    assert len([*SAMPLE.glob("part-*.json")]) == 4
