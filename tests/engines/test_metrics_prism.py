"""What Prism's page says of the jobs of a run."""

import html
import re
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from tests.engines.conftest import PRISM
from tests.engines.inputs import write_damage, write_wudao
from tests.engines.processes import answers, started, wait_until
from tests.engines.runs import finished
from tests.pipelines.metrics import check_metrics
from tests.ports import free_port

pytestmark = [pytest.mark.engine, pytest.mark.slow]

_COUNTER = re.compile(r"- corpusmill\.([^:{}]+): (\d+)\s")
_JOB = re.compile(r"(job-\d+)\s+corpusmill out (\w+)\s+DONE")


def page(port: int, path: str) -> str:
    """The text of a page."""
    with urllib.request.urlopen(f"http://localhost:{port}/{path}", timeout=10) as answer:
        body = answer.read().decode().partition("<body")[2]
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


def test_the_counters_on_the_page_say_what_the_report_says(tmp_path: Path) -> None:
    if not PRISM.exists():
        pytest.skip(f"{PRISM} is missing: run make engines")
    corpus = write_damage(write_wudao(tmp_path / "in", documents=150), documents=20)
    port, web, log = free_port(), free_port(), tmp_path / "prism.log"
    command = [PRISM, "--job_port", port, "--web_port", web, "--log_level", "error"]
    flags = [
        *("--input", corpus, "--split-bytes", "22k", "--shards", "2", "--quality", "glm"),
        *("--min-chars", "1", "--max-reject-rate", "0.2"),
        *("--runner=PrismRunner", f"--job_endpoint=localhost:{port}"),
        "--environment_type=LOOPBACK",
    ]
    with started(command, log=log) as prism:
        wait_until(lambda: answers(port) and answers(web), prism, log=log)
        run = finished("pipelines.wudao", flags, tmp_path / "out")
        jobs = {phase: page(web, f"job/{job}") for job, phase in _JOB.findall(page(web, ""))}
    report = run.report()
    assert jobs.keys() == report["tasks"].keys()
    for phase, step in {"map": "Map splits", "merge": "Merge shards"}.items():
        assert re.search(rf"^\s*{step}\s*$", jobs[phase], re.MULTILINE)
    counts = {
        phase: Counter({name: int(number) for name, number in _COUNTER.findall(text)})
        for phase, text in jobs.items()
    }
    check_metrics(counts, report)
