"""The report of a run: `report.json` as a page that a browser shows without network.

    python -m pipelines.report DATASET [--corpus-size 200GB] [--output FILE.html]

draws the page again from what the run left; no document is read.
"""

import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence

from pipelines.report.page import page
from pipelines.report.write import PAGE, REPORT, write_html
from shards import manifest as manifests
from shards.command import Parser, print_text
from shards.errors import UserError
from shards.storage.files import read_json, shape_expected
from shards.storage.remote import any_path

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGTP]?)(i?)B", re.IGNORECASE)


def corpus_size(text: str) -> int:
    """Return a size in bytes, written as "200GB" or "1.5 TiB".

    Raises:
        ArgumentTypeError: It is not a size, or it is zero.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise ArgumentTypeError(f"{text!r} is not a size: write it as 200GB or 1.5TB")
    power = " kmgtp".index(match[2].lower() or " ")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** power)


def draw_page(argv: Sequence[str]) -> str:
    """Draw the page that the command line asks for and return its path.

    Raises:
        UserError: There is no dataset, or it has no report.json.
    """
    parser = Parser(
        prog="python -m pipelines.report",
        description="Draw report.html of a dataset again; no document is read.",
    )
    parser.add_argument("dataset", type=any_path, help="the folder of a dataset")
    parser.add_argument(
        "--corpus-size",
        type=corpus_size,
        metavar="SIZE",
        help="also project the cost to a corpus with this much text, for example 200GB",
    )
    parser.add_argument(
        "--output", type=any_path, metavar="FILE", help=f"default: {PAGE} in the dataset"
    )
    options = parser.parse_args(argv)
    manifest = manifests.read_manifest(options.dataset)
    path = options.dataset / REPORT
    if not path.exists():
        raise UserError(
            f"{path} is missing, and only it describes the run that made this dataset. Copy it "
            "from where the dataset was made; python -m shards stats shows what the manifest says"
        )
    output = options.output or options.dataset / PAGE
    report = read_json(path)
    advice = "copy it from where the dataset was made, or build the dataset again"
    with shape_expected(path, advice):
        html = page(manifest, report, corpus_size=options.corpus_size)
    write_html(output, html)
    return str(output)


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    return print_text(
        "pipelines.report", lambda: draw_page(argv), stopped="the page was not changed"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
