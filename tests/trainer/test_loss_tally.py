import numpy as np
import torch

from tests.trainer.alone import ALONE
from trainer.loss_tally import TASKS, LossTally
from trainer.model.loss import LossSums


def sums_of(losses: list[float], correct: list[int], targets: list[int]) -> LossSums:
    return LossSums(torch.tensor(losses), torch.tensor(correct), torch.tensor(targets))


def test_figures_by_source_and_task() -> None:
    rows = {"source": torch.tensor([0, 1, 1, 2]), "task": torch.tensor([0, 0, 2, 2])}
    tally = LossTally.empty(("web", "notes", "web"))
    tally = tally.plus(rows, sums_of([10, 20, 30, 40], [1, 2, 3, 4], [10, 10, 10, 10]))
    assert tally.num_targets == 40
    assert tally.loss == 2.5
    assert tally.figures() == {
        "loss": 2.5,
        "accuracy": 0.25,
        "loss/spans": 1.5,
        "accuracy/spans": 0.15,
        "loss/generation": 3.5,
        "accuracy/generation": 0.35,
        "loss/web": 2.5,
        "accuracy/web": 0.25,
        "loss/notes": 2.5,
        "accuracy/notes": 0.25,
    }
    assert (tally + tally).loss == tally.loss
    assert (tally + tally).num_targets == 80
    assert np.array_equal(tally.summed_over(ALONE).sums, tally.sums)


def test_no_token_loses_nothing() -> None:
    tally = LossTally.empty(("web",))
    assert tally.loss == 0
    assert np.isnan(tally.figures()["loss"])


def test_one_source_and_task_are_not_repeated() -> None:
    rows = {"source": torch.tensor([0]), "task": torch.tensor([len(TASKS) - 1])}
    tally = LossTally.empty(("web",)).plus(rows, sums_of([3], [1], [2]))
    assert tally.figures() == {"loss": 1.5, "accuracy": 0.5}


def test_further_sources_change_nothing_so_far() -> None:
    rows = {"source": torch.tensor([0, 1]), "task": torch.tensor([0, 0])}
    tally = LossTally.empty(("web", "notes")).plus(rows, sums_of([3, 4], [1, 0], [2, 2]))
    wider = tally.with_sources(("web", "notes", "web"))
    assert wider.figures() == tally.figures()
    new = {"source": torch.tensor([2]), "task": torch.tensor([0])}
    assert wider.plus(new, sums_of([5], [1], [2])).figures()["loss/web"] == 2
