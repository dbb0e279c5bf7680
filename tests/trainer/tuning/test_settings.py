import pytest

from shards.errors import UserError
from trainer.deepspeed_json import FINETUNE, presets
from trainer.tuning.order import Order
from trainer.tuning.settings import Config, parse

GIVEN = ("--data", "items", "--init-from", "build/run", "--save", "build/tuned")


def config(*flags: str, world: int = 1) -> Config:
    return parse([*GIVEN, *flags], world=world)


@pytest.mark.parametrize("name", presets("args", folder=FINETUNE))
def test_recipes_are_read(name: str) -> None:
    read = config("--recipe", name, world=8)
    assert name.startswith(f"finetune-{read.task.name}")
    assert read.tuning.schedule == "linear"
    assert config("--recipe", name, "--epochs", "3").tuning.epochs == 3


def test_the_recipe_of_the_published_copa() -> None:
    tuning = config("--recipe", "finetune-copa-10b", world=8).tuning
    assert (tuning.lr, tuning.weight_decay, tuning.betas) == (5e-6, 0.01, (0.9, 0.95))
    assert (tuning.model, tuning.batch_size, tuning.seed) == ("glm-10b", 64, 1234)
    order = Order(
        num_items=800,
        batch_size=tuning.batch_size,
        epochs=tuning.epochs,
        seed=tuning.seed,
        across_epochs=tuning.across_epochs,
    )
    schedule = tuning.settings().schedule_of(order.steps)
    assert (schedule.decay, schedule.warmup, schedule.floor) == (1250, 125, 0.1)
    assert schedule.rate(125) == 5e-6


def test_the_batch_of_the_json_counts_unless_it_is_given() -> None:
    assert config("--task", "rte", "--deepspeed", "finetune-10b", world=8).tuning.batch_size == 32
    flags = ("--task", "rte", "--deepspeed", "finetune-10b", "--batch-size", "8")
    assert config(*flags, world=8).tuning.batch_size == 8


WRONG = {
    "beams to choose": (("--task", "rte", "--beams", "3"), "--beams: the task rte writes no texts"),
    "a loss to choose": (("--task", "rte", "--by-loss"), "--by-loss: the task rte writes no texts"),
    "fewest and the task's most": (
        ("--task", "seq2seq", "--min-answer", "9", "--target-length", "7"),
        "--min-answer 9 is more than 7,",
    ),
}


def test_how_texts_are_written() -> None:
    flags = ("--beams", "3", "--beam-penalty", "0.5", "--min-answer", "2", "--no-repeat-ngram", "4")
    decoding = config("--task", "seq2seq", *flags, "--max-answer", "9").decoding
    assert (decoding.beams, decoding.length_penalty, decoding.no_repeat_ngram) == (3, 0.5, 4)
    assert (decoding.min_new_tokens, decoding.max_new_tokens) == (2, 9)
    assert config("--task", "seq2seq", "--target-length", "7").decoding.max_new_tokens == 7


@pytest.mark.parametrize(("flags", "message"), WRONG.values(), ids=WRONG)
def test_wrong_flags(flags: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError) as raised:
        config(*flags)
    assert message in str(raised.value)
