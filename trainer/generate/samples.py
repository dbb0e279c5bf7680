"""Generates sample texts during training, for the log, TensorBoard and the terminal.

Tokens are drawn with the defaults of THUDM/GLM, a temperature of 0.9 and the 40 most probable
tokens. The random numbers are the same each time, so the samples of two steps differ only because
of the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.distributed import CollectiveError, Stop
from trainer.generate.decoding import Decoding
from trainer.generate.prompt import Prompt, make_prompt, read_prompts
from trainer.generate.rank_generator import RankGenerator
from trainer.generate.text_generator import GeneratedText
from trainer.import_weights.loaded_model import ModelSource, find_tokenizer
from trainer.load_options import LoadOptions
from trainer.log import RunLog
from trainer.pretraining import PretrainTask
from trainer.tokenizer import TextTokenizer

TEMPERATURE, TOP_K = 0.9, 40
_BATCH = 8
"""The number of prompts that a rank fills at once."""


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The prompts of a run, and the generator that fills them."""

    prompts: Sequence[Prompt]
    generator: RankGenerator
    tokenizer: TextTokenizer | None
    """The tokenizer on the first rank; None on all other ranks."""

    def write(self, step: int, log: RunLog) -> None:
        """Fill the prompts and log the texts; all ranks call this.

        If the logits are not finite, a line reports that and the run continues, because its losses
        decide when it ends.

        Args:
            step: the last step taken.
            log: the log of the run.
        """
        try:
            filled = self.generator.fill(len(self.prompts), self.prompts.__getitem__)
        except CollectiveError:
            log.show(f"step {step:,}: no samples: the model's logits are NaN or infinite")
            return
        if filled is not None and self.tokenizer is not None:
            for number, pair in enumerate(zip(self.prompts, filled, strict=True)):
                found = GeneratedText.of(*pair, self.tokenizer)
                log.write_sample(step, number, prompt=found.prompt, text=found.text)


def open_samples(task: PretrainTask, source: ModelSource, path: Path, *, stop: Stop) -> Samples:
    """Return the samples of a run; all ranks call this.

    Args:
        task: the task of the run.
        source: the model of the run.
        path: the file of prompts.
        stop: the signals to stop, which are checked before each token.

    Raises:
        CollectiveError: the file of prompts, or the tokenizer of the data, cannot be used.
    """
    config, state, ranks = task.config, task.state, task.state.ranks

    def prepare() -> tuple[TextTokenizer | None, list[Prompt]]:
        if not ranks.is_first:
            return None, []
        tokenizer = find_tokenizer(source, LoadOptions(tokenizer=config.tokenizer))
        return tokenizer, [
            make_prompt(text, tokenizer, source.prompt_format) for text in read_prompts(path)
        ]

    tokenizer, prompts = ranks.run_on_all_ranks(prepare)
    generator = RankGenerator(
        engine=state.engine,
        shape=task.data.shape,
        decoding=Decoding(
            max_new_tokens=config.sample_tokens,
            temperature=TEMPERATURE,
            top_k=TOP_K,
            seed=task.data.plan.seed,
        ),
        ranks=ranks,
        stop=stop,
        batch_size=_BATCH,
    )
    return Samples(prompts=ranks.gather(prompts)[0], generator=generator, tokenizer=tokenizer)
