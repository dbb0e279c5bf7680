"""Rows on the viewer, reports, estimates, calls from Python, and Beam transforms."""

from tests.golden import corpora, corpus_interfaces
from tests.golden.row import Command, Row

_SEEN = (
    "pipelines.text --input web=in --input asked=zhihu:asked --output data "
    "--provenance url,title --keep-dropped --dedup minhash --shards 2 --validation 0.05 "
    "--quality en=gopher --tokenizer sentencepiece:tok.model --max-reject-rate 1 --append"
)
_PAGES = "tests.golden.viewer_pages"

_VIEWER = (
    Row(
        name="seen",
        about="every kind of viewer page, of a dataset with duplicates, faults and a removal",
        setup=(corpora.tokenizer, corpus_interfaces.first_day, corpora.copy_scripts("save_run.py")),
        commands=(
            _SEEN,
            Command(words=_SEEN, prepare=corpus_interfaces.second_day),
            "save_run.py",
            f"{_PAGES} dropped data",
            "shards remove data --id page-9 --id page-41 --reason asked",
            f"{_PAGES} whole data --run run.json",
            f"{_PAGES} early data@1",
            Command(words=f"{_PAGES} damaged data", prepare=corpus_interfaces.damage_files),
            Command(words="shards verify data", prepare=corpus_interfaces.restore_files),
        ),
    ),
)

_MADE = "tests.golden.beam_transforms"
_YAML = "apache_beam.yaml.main --runner=FnApiRunner --yaml_pipeline_file"

_STEPS = (corpora.tokenizer, corpus_interfaces.first_day, corpus_interfaces.transform_inputs)
_TRANSFORMS = (
    Row(
        name="transforms",
        about="the steps as Beam transforms: counters, dropped records, datasets",
        setup=_STEPS,
        commands=(f"{_MADE} apart", f"{_MADE} joined"),
    ),
    Row(
        name="transforms-rows",
        about="documents as rows, rows of another origin, and a pipeline written in YAML",
        setup=_STEPS,
        commands=(
            f"{_MADE} rows",
            *(
                Command(words=f"{_YAML}={name}.yaml", pins_output=False)
                for name in ("steps", "short")
            ),
        ),
    ),
)

_CALLS = "tests.golden.python_calls"

_FROM_PYTHON = (
    Row(
        name="called",
        about="datasets that Python builds and opens: results, output and errors of the calls",
        setup=(corpora.tokenizer, corpus_interfaces.first_day),
        commands=(f"{_CALLS} made", f"{_CALLS} opened"),
    ),
    Row(
        name="planned",
        about="estimates for many kinds of runs: files, items, space, memory",
        setup=(corpora.tokenizer, corpus_interfaces.first_day, corpus_interfaces.many_short),
        commands=(f"{_CALLS} planned",),
    ),
)

_REPORTS = (
    Row(
        name="reported",
        about="the report of a dataset of three days, and rethreshold on it",
        starts_from="seen",
        commands=(
            Command(words=_SEEN, prepare=corpus_interfaces.third_day),
            "tests.golden.page_text data/report.html",
            "pipelines.report data --output page.html --corpus-size 2TB",
            "tests.golden.page_text page.html subsets projection",
            f"{_CALLS} opened",
            "pipelines.rethreshold data --threshold gopher.min_words=110 --languages en",
        ),
    ),
)

_HELP = (
    Row(
        name="help",
        about="the flags of the longest commands, in their groups",
        commands=tuple(
            f"{command} --help"
            for command in ("pipelines.wudao", "trainer.train", "trainer.generate")
        ),
    ),
)

ROWS = (*_VIEWER, *_TRANSFORMS, *_FROM_PYTHON, *_REPORTS, *_HELP)
