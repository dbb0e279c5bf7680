"""The map of small corpora, in this process and without Beam; models are loaded once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from pipelines.corpus.options import Options
from pipelines.corpus.sources import match_corpora
from pipelines.engine.phases import Phases
from pipelines.engine.runner import Runner
from pipelines.inputs.files import InputFile
from pipelines.map import mapper
from pipelines.map.chain import Chain
from pipelines.map.mapper import Job, segment_versions
from pipelines.map.phase import MapPhase
from tests.pipelines.inline import InlineRunner, JobMaker, PhaseMaker
from tests.pipelines.runs import MODULE, page, small, write_wudao


@pytest.fixture(scope="session")
def small_chain() -> Chain:
    """The chain of `small` runs."""
    return Chain(small(Path("out"), "in"))


@pytest.fixture
def make_job(small_chain: Chain, monkeypatch: pytest.MonkeyPatch) -> JobMaker:
    """Makes the job of a small run, with its files."""
    monkeypatch.setattr(mapper, "load_chain", lambda *_, **__: small_chain)

    def make(options: Options) -> tuple[Job, Sequence[InputFile]]:
        files, corpora = match_corpora(MODULE, options)
        versions = segment_versions(small_chain.engines, corpora)
        return Job(options=options, corpora=corpora, versions=versions, run="r"), files

    return make


@pytest.fixture
def map_phase(make_job: JobMaker, small_chain: Chain) -> PhaseMaker:
    """Makes the map of a small run."""

    def make(options: Any, runner: InlineRunner | None = None) -> MapPhase:
        job, files = make_job(options)
        phases = Phases(job.work, cast("Runner", runner or InlineRunner()))
        return MapPhase(job, small_chain.facts, files=files, phases=phases, failed={})

    return make


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A file of twelve pages."""
    return write_wudao(tmp_path / "in" / "part-1.json", map(page, range(12)))
