from collections.abc import Callable
from dataclasses import replace

from trainer.config import TrainConfig
from trainer.data import open_data, source_names

Configure = Callable[..., TrainConfig]


def test_validation_of_a_run_whose_first_stage_lacks_a_stream(configure: Configure) -> None:
    config = configure()
    run = config.sampling_plan()
    (mix,) = run.mixes
    web, notes = "00000000/web", "00000000/notes"
    mixes = (replace(mix, weights={web: 1}), replace(mix, start=4, weights={web: 1, notes: 1}))
    run = replace(run, mixes=mixes, followed=0)
    data = open_data(config, run, config.shape)
    assert data.held_out is not None
    assert source_names(data.held_out.streams) == ("notes", "web")
