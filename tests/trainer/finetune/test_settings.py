import pytest

from tests.trainer.alone import tuning
from trainer.deepspeed import FINETUNE, presets
from trainer.finetune.command import Finetune
from trainer.finetune.epoch_order import EpochOrder

GIVEN = ("--data", "items", "--init-from", "build/run", "--save", "build/tuned")


def config(*flags: str, world: int = 1) -> Finetune:
    return tuning([*GIVEN, *flags], world=world)


@pytest.mark.parametrize("name", presets("args", folder=FINETUNE))
def test_recipes_are_read(name: str) -> None:
    read = config("--recipe", name, world=8)
    assert name.startswith(f"finetune-{read.described_task.name}")
    assert read.schedule == "linear"
    assert config("--recipe", name, "--epochs", "3").epochs == 3


def test_the_recipe_of_the_published_copa() -> None:
    read = config("--recipe", "finetune-copa-10b", world=8)
    assert (read.lr, read.weight_decay, read.betas) == (5e-6, 0.01, (0.9, 0.95))
    assert (read.model, read.batch_size, read.seed) == ("glm-10b", 64, 1234)
    order = EpochOrder(
        num_items=800,
        batch_size=read.batch_size,
        epochs=read.epochs,
        seed=read.seed,
        across_epochs=read.across_epochs,
    )
    schedule = read.schedule_of(order.steps)
    assert (schedule.decay, schedule.warmup, schedule.floor) == (1250, 125, 0.1)
    assert schedule.rate(125) == 5e-6
