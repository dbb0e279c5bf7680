"""Prints, for each input named on the command line, the input's files or the error."""

import dataclasses
import json
import sys

from pipelines.read.files import match_inputs, open_input
from pipelines.read.split import open_split, split_file
from shards.errors import UserError


def answer(spec: str) -> object:
    try:
        files = match_inputs([spec], pattern="*.parquet", default_name="web")
        contents = []
        for file in files:
            (split,) = split_file(file, file.bytes)
            with open_split(split) as stream:
                contents.append(stream.read().decode("latin-1"))
            with open_input(file.path) as stream:
                stream.seek(1)
                assert stream.read(2).decode("latin-1") == contents[-1][1:3]
    except UserError as error:
        return {"error": str(error)}
    return {"files": [dataclasses.asdict(file) for file in files], "contents": contents}


for spec in sys.argv[1:]:
    print(json.dumps(answer(spec)), flush=True)
