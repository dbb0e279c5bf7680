"""Reads a dataset and uses models by the public names of `shards` and `trainer`."""

import hashlib
from itertools import islice
from pathlib import Path

import shards
import trainer


def show(name, batches):
    for number, batch in enumerate(batches):
        for key, value in sorted(batch.items()):
            digits = hashlib.sha256(value.contiguous().numpy().tobytes()).hexdigest()[:12]
            print(name, number, key, value.dtype, tuple(value.shape), digits)


streams = shards.streams_of(shards.Dataset.open("data"))
sampler = shards.Sampler(streams, seed=2, num_scatters=1, window=shards.glm_windows(64))
loader = trainer.Loader(sampler, batch_size=3)
show("first", islice(loader, 2))
state = loader.state_dict()
print(state["position"])
later = trainer.Loader(sampler, batch_size=6)
later.load_state_dict(state)
show("later", islice(later, 1))

for run, task_name, data in (("glm", "copa", "more-copa"), ("left", "prompted", "more-said")):
    model = trainer.open_model(run, trainer.LoadOptions(dtype="fp32", device="cpu"))
    decoding = trainer.Decoding(max_new_tokens=6, top_k=5, seed=3)
    shared = {"prompt_format": model.source.prompt_format}
    texts = ["The river", "The"]
    for found in trainer.generate_texts(
        model.model, model.tokenizer, texts, decoding=decoding, **shared
    ):
        print(run, model.source.objective, model.source.step, found)
    task = trainer.find_task(task_name)
    options = trainer.PromptOptions(length=70)
    questions = task.examples(
        Path(data), split="val", tokenizer=model.tokenizer, options=options, **shared
    )
    answers = [one.answer for one in trainer.predict(model.model, questions)]
    print(answers, task.metrics(questions, answers))
    for line in task.prediction_lines(questions, answers):
        print(line)
