"""Generates texts and answers a task, using only the public names of `trainer`."""

from pathlib import Path

import trainer

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
