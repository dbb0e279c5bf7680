import re
from html import unescape
from pathlib import Path

from shards import BatchSize, Mix, Run
from shards.trace import Tracer, step_lines
from tests.shards.view.conftest import Show


def test_a_step_shows_its_windows_and_leads_to_their_documents(show: Show, built: Path) -> None:
    run = Run(
        mixes=(Mix(start=0, data=(str(built),)),),
        batches=(BatchSize(step=0, size=100),),
        seed=1,
        scatters=1,
        length=128,
        steps=3,
    )
    client = show(built, tracer=Tracer(run))
    text = client.get("/step?n=2")
    more = re.findall('<a href="([^"]*)" accesskey="n" rel="next">go on', text)
    text += client.get(unescape(more[0]))
    lines = [line for line in step_lines(Tracer(run), 2) if "window" in line]
    windows = [line.split()[7] for line in lines]
    assert re.findall(r"window ([\d,]+) of g0001", text) == windows
    assert len(windows) == 100
    (target, extent) = re.findall(r'<li><a href="([^"]*)">tokens ([\d,]+)-', text)[0]
    document = client.get(unescape(target).partition("#")[0])
    assert f"token {extent} of" in document


def test_a_step_that_no_run_has_is_refused(show: Show, built: Path) -> None:
    run = Run(
        mixes=(Mix(start=0, data=(str(built),)),),
        batches=(BatchSize(step=0, size=8),),
        seed=1,
        scatters=1,
        length=128,
        steps=3,
    )
    client = show(built, tracer=Tracer(run))
    for step in (3, 10**9, 10**17):
        assert "the run has 3 steps" in client.get(f"/step?n={step}", status=400)


def test_without_a_run_there_are_no_steps(show: Show, built: Path) -> None:
    client = show(built)
    assert "--run RUN" in client.get("/step?n=0", status=400)
    assert "/step" not in client.get("/")
