from collections.abc import Callable
from dataclasses import replace

import torch

from tests.trainer.alone import ALONE
from trainer.data import open_data, source_names
from trainer.loss_tally import CAUSAL_TASK
from trainer.settings import Config

Configure = Callable[..., Config]


def test_a_validation_may_be_cut_short(configure: Callable[..., Config]) -> None:
    whole = open_data(configure("--eval-samples", "0")).held_out
    cut = open_data(configure("--eval-samples", "5")).held_out
    assert whole is not None
    assert cut is not None
    assert (len(cut), cut.num_windows) == (5, len(whole)) == (5, whole.num_windows)
    # The same windows on any number of ranks, from all sources.
    chosen = [cut.draw(range(rank, 5, 2)).stream.tolist() for rank in (0, 1)]
    assert sorted(chosen[0] + chosen[1]) == cut.draw(range(5)).stream.tolist()
    assert set(chosen[0] + chosen[1]) == {0, 1}
    every = len(whole) / 5
    places = [int(i * every) for i in range(5)]
    assert cut.draw(range(5)).sample.tolist() == whole.draw(places).sample.tolist()
    more = open_data(configure("--eval-samples", "100000")).held_out
    assert more is not None
    assert len(more) == len(whole)


def test_validation_of_a_run_whose_first_stage_lacks_a_stream(configure: Configure) -> None:
    config = configure()
    (mix,) = config.run.mixes
    web, notes = "00000000/web", "00000000/notes"
    mixes = (replace(mix, weights={web: 1}), replace(mix, start=4, weights={web: 1, notes: 1}))
    run = replace(config.run, mixes=mixes, followed=0)
    data = open_data(replace(config, run=run))
    assert data.held_out is not None
    assert source_names(data.held_out.streams) == ("notes", "web")


def test_next_tokens_of_isolated_documents(configure: Configure) -> None:
    data = open_data(configure("--objective", "causal", "--isolate-documents"))
    batch = next(data.batches(0, ALONE))
    assert data.blanks is None
    assert set(batch["task"].tolist()) == {CAUSAL_TASK}
    documents, tokens = batch["pieces"], batch["tokens"]
    follows_eos = tokens[:, :-1] == 0
    inside = torch.arange(1, tokens.shape[1]) < batch["lengths"][:, None]
    begins = documents.diff(dim=1) == 1
    assert torch.equal(begins & inside, follows_eos & inside)
