"""The report of a run: `report.json` as a page that a browser shows without network.

    python -m pipelines.report DATASET [--corpus-size 200GB] [--output FILE.html]

draws the page anew from what the run left; no document is read.
"""

import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence

from pipelines.report.page import page
from pipelines.report.write import PAGE, REPORT, write_html
from shards import manifest as manifests
from shards.command import Parser, exit_code
from shards.errors import UserError
from shards.storage.files import read_json
from shards.storage.remote import any_path

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGTP]?)(i?)B", re.IGNORECASE)


def corpus_size(text: str) -> int:
    """Return a size in bytes, given as "200GB" or "1.5 TiB"."""
    matched = _SIZE.fullmatch(text.strip())
    if matched is None or not float(matched[1]):
        raise ArgumentTypeError(f"{text!r} is no size: write it as 200GB or 1.5TB")
    power = " kmgtp".index(matched[2].lower() or " ")
    return int(float(matched[1]) * (1024 if matched[3] else 1000) ** power)


def draw(argv: Sequence[str]) -> None:
    """Draw the page that the command line asks for, and say where it is.

    Raises:
        UserError: There is no dataset, or it has no report.
    """
    parser = Parser(
        prog="python -m pipelines.report",
        description="Draw report.html of a dataset anew; no document is read.",
    )
    parser.add_argument("dataset", type=any_path, help="the folder of a dataset")
    parser.add_argument(
        "--corpus-size",
        type=corpus_size,
        metavar="SIZE",
        help="project the cost to a corpus with so much text, for example 200GB",
    )
    parser.add_argument(
        "--output", type=any_path, metavar="FILE", help=f"default: {PAGE} in the dataset"
    )
    options = parser.parse_args(argv)
    manifest = manifests.read_manifest(options.dataset)
    path = options.dataset / REPORT
    if not path.exists():
        raise UserError(
            f"{path} is missing: without it nothing is known of the run that made this dataset. "
            "Copy it from where the dataset was made; python -m shards stats shows what the "
            "manifest knows"
        )
    output = options.output or options.dataset / PAGE
    write_html(output, page(manifest, read_json(path), corpus_size=options.corpus_size))
    sys.stdout.write(f"{output}\n")


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    return exit_code("pipelines.report", lambda: draw(argv), stopped="the page was not changed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
