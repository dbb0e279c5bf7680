"""Flags of older and other tools that make training data, and what each is for a corpus here.

They are of earlier versions, of THUDM/GLM (commit 4f61ed7), tools/preprocess_data.py of
Megatron-LM, dev/data of llm.c, datatrove, and scripts of transformers. Dashes stand for underscores
too.
"""

from collections.abc import Mapping

_TOKENIZER = "here --tokenizer sentencepiece:FILE.model, tiktoken:NAME or hf:tokenizer.json"
_INPUT = "here --input PATH"
_OUTPUT = "here --output DIR, the folder of the dataset"
_FIELD = "a corpus knows its fields; python -m pipelines.text has --text-field NAME for any other"
_VALIDATION = "here --validation F, a share of each source's documents"
_TRAINER = "a flag of the trainer: python -m trainer.train --help"
_WORKERS = "here --workers N"
_SAMPLE = "here --sample F, a share of the records"

OLD: Mapping[str, str] = {
    "--tokenizer-type": _TOKENIZER,
    "--tokenizer-model-type": _TOKENIZER,
    "--tokenizer-model": _TOKENIZER,
    "--tokenizer-path": _TOKENIZER,
    "--tokenizer-name": _TOKENIZER,
    "--tokenizer-name-or-path": _TOKENIZER,
    "--vocab-file": _TOKENIZER,
    "--merge-file": _TOKENIZER,
    "--model-desc": _TOKENIZER,
    "-m": _TOKENIZER,
    "--fix-command-token": "not needed: the tokens for blanks are found by their names",
    "--vocab-size": "of python -m pipelines.train_tokenizer, which makes a tokenizer",
    "--train-data": _INPUT,
    "--train-file": _INPUT,
    "--train-data-path": _INPUT,
    "--data": _INPUT,
    "--data-dir": _INPUT,
    "--data-path": _INPUT,
    "--dataset": "here --input hf:OWNER/NAME",
    "--dataset-name": "here --input hf:OWNER/NAME",
    "--input-folder": _INPUT,
    "-i": _INPUT,
    "--output-prefix": _OUTPUT,
    "--output-dir": _OUTPUT,
    "--output-folder": _OUTPUT,
    "--save": _OUTPUT,
    "-o": _OUTPUT,
    "--json-keys": _FIELD,
    "--json-key": _FIELD,
    "--text-key": _FIELD,
    "--text-column": _FIELD,
    "--append-eod": "not needed: every document ends with the tokenizer's end of text",
    "--split-sentences": "not needed: windows are cut at ends of sentences when they are read",
    "--keep-newlines": "not needed: line breaks stay",
    "--dataset-impl": "not needed: datasets are mapped, by Megatron-LM as well",
    "--no-lazy-loader": "not needed: datasets are mapped",
    "--no-pre-tokenize": "not needed: datasets are tokens",
    "--loader-scatter": "here nothing: --scatters S of the trainer, for the same files",
    "--scatter": "here nothing: --scatters S of the trainer, for the same files",
    "--shuffle": "not needed: the order is always random, by --seed",
    "--filter-english": "here --languages en",
    "--language": "here --languages LIST",
    "--lang": "here --languages LIST",
    "--valid-data": _VALIDATION,
    "--split": _VALIDATION,
    "--val-ratio": _VALIDATION,
    "--shard-size": "here --shard-tokens N",
    "-s": "here --shard-tokens N",
    "--num-shards": "here --shards N",
    "--num-proc": _WORKERS,
    "--partitions": "not needed: --workers N divides the files; --part I/N between machines",
    "--tasks": "not needed: the input is cut into tasks by --split-bytes",
    "--limit": _SAMPLE,
    "--max-samples": _SAMPLE,
    "--minhash": "here --dedup minhash",
    "--deduplicate": "here --dedup exact or minhash",
    "--seq-length": _TRAINER,
    "--batch-size": _TRAINER,
    "--train-iters": _TRAINER,
    "--max-steps": _TRAINER,
    "--model": _TRAINER,
    "--skip-poison": (
        "no longer: a run names the file at which its workers die; mend it, or leave it out of "
        "--input"
    ),
}
"""By flag."""
