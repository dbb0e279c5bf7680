"""The command that writes report.html again from report.json, without reading documents."""

from dataclasses import MISSING, dataclass

from pipelines.report.page import page
from pipelines.report.write import PAGE, REPORT, shown_name, write_html
from shards.commands.command import Command
from shards.commands.flags import WORD, option, positive
from shards.commands.output import print_line
from shards.commands.table import called
from shards.errors import UserError
from shards.manifest import read_manifest
from shards.storage.files import json_errors_explained, read_json
from shards.storage.remote import AnyPath, any_path


@dataclass(frozen=True, kw_only=True)
class DrawReport(Command):
    """Draw the report.html of a dataset again, without reading documents."""

    STOPPED = "the page was not changed"

    dataset: AnyPath = option(MISSING, flag=WORD, type=any_path, metavar="DATASET")
    """Folder of the dataset."""
    corpus_size: int | None = option(None, type=positive, metavar="SIZE")
    """Also estimate the cost of a corpus with this much text, for example 200GB."""
    output: AnyPath | None = option(
        None, f"Page to write. Default: {PAGE} in the dataset.", type=any_path, metavar="FILE"
    )

    def run(self) -> None:
        """Draw the page and print its path.

        Raises:
            UserError: There is no dataset, or it has no report.json.
        """
        manifest = read_manifest(self.dataset)
        path = self.dataset / REPORT
        if not path.exists():
            raise UserError(
                f"{path} is missing: only this file describes the run that made the dataset. Copy "
                "it from the folder in which the dataset was made. "
                f"{called('shards stats')} shows the figures of the manifest"
            )
        report = read_json(path)
        with json_errors_explained(
            path,
            "copy it from where the dataset was made, or build the dataset again",
        ):
            name = shown_name(self.dataset)
            html = page(name, manifest, report, corpus_size=self.corpus_size)
        output = self.output or self.dataset / PAGE
        write_html(output, html)
        print_line(str(output))
