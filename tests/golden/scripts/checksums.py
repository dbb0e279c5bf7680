"""Prints the checksums of inputs that the manifests keep."""

import json
import sys
from pathlib import Path

for dataset in sys.argv[1:]:
    manifest = json.loads((Path(dataset) / "manifest.json").read_text("utf-8"))
    for generation in manifest["generations"]:
        for entry in generation["inputs"]:
            print(dataset, generation["number"], entry["source"], entry["path"], entry["crc32c"])
