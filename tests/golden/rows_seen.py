"""Rows on what is seen of a dataset: pages of the viewer, reports, plans, calls, transforms."""

from tests.golden import corpora, corpus_seen
from tests.golden.row import Command, Row

_SEEN = (
    "pipelines.text --input web=in --input asked=zhihu:asked --output data "
    "--provenance url,title --keep-dropped --dedup minhash --shards 2 --validation 0.05 "
    "--quality en=gopher --tokenizer sentencepiece:tok.model --max-reject-rate 1 --append"
)
_PAGES = "tests.golden.seen_pages"

_VIEWER = (
    Row(
        name="seen",
        about="every kind of page of the viewer, of two days with copies, faults and a removal",
        corpora=(corpora.tokenizer, corpus_seen.seen_first, corpus_seen.save_run),
        commands=(
            _SEEN,
            Command(words=_SEEN, files=corpus_seen.seen_second),
            "save.py",
            f"{_PAGES} dropped data",
            "shards remove data --id page-9 --id page-41 --reason asked",
            f"{_PAGES} whole data --run run.json",
            f"{_PAGES} early data@1",
            Command(words=f"{_PAGES} harmed data", files=corpus_seen.seen_harmed),
            Command(words="shards verify data", files=corpus_seen.seen_mended),
        ),
    ),
)

_MADE = "tests.golden.seen_transforms"
_YAML = "apache_beam.yaml.main --runner=FnApiRunner --yaml_pipeline_file"

_STEPS = (corpora.tokenizer, corpus_seen.seen_first, corpus_seen.steps_of_transforms)
_TRANSFORMS = (
    Row(
        name="transforms",
        about="the steps as Beam transforms: counters, what is left out, datasets",
        corpora=_STEPS,
        commands=(f"{_MADE} apart", f"{_MADE} joined"),
    ),
    Row(
        name="transforms-rows",
        about="documents as rows, rows of another origin, and a pipeline written in YAML",
        corpora=_STEPS,
        commands=(
            f"{_MADE} rows",
            *(Command(words=f"{_YAML}={name}.yaml", prints=False) for name in ("steps", "short")),
        ),
    ),
)

_CALLS = "tests.golden.seen_calls"

_FROM_PYTHON = (
    Row(
        name="called",
        about="datasets made and opened from Python: what calls return, print and refuse",
        corpora=(corpora.tokenizer, corpus_seen.seen_first),
        commands=(f"{_CALLS} made", f"{_CALLS} opened"),
    ),
    Row(
        name="planned",
        about="what runs of many kinds would take: files, tasks, space, memory",
        corpora=(corpora.tokenizer, corpus_seen.seen_first, corpus_seen.many_short),
        commands=(f"{_CALLS} planned",),
    ),
)

_REPORTS = (
    Row(
        name="reported",
        about="the report of a dataset of three days, and what other thresholds would keep of it",
        after="seen",
        commands=(
            Command(words=_SEEN, files=corpus_seen.seen_third),
            "tests.golden.seen_text data/report.html",
            "pipelines.report data --output page.html --corpus-size 2TB",
            "tests.golden.seen_text page.html subsets projection",
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
