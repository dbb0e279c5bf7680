"""The transforms for Beam YAML, with named arguments and named outputs.

docs/examples/beam-providers.yaml declares them to Beam. Every output can be the input of another
transform, as in `Clean.kept`. The input of WriteDataset is a mapping; the documents under `kept`
become the dataset.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pipelines import transforms
from pipelines.execute import beam
from pipelines.execute.beam import PCollection
from shards.errors import UserError


class Named(beam.PTransform[Any, Any]):
    """A transform whose outputs have names."""

    def __init__(self, transform: Any) -> None:
        super().__init__()
        self._transform = transform

    def expand(self, start: Any) -> dict[str, Any]:
        """Apply the transform."""
        outputs: dict[str, Any] = (start | self._transform)._asdict()
        return outputs


def read_corpus(corpus: str, input: str | list[str] = "", **options: Any) -> Named:
    """Read a corpus; the outputs are kept, dropped, quarantined and splits."""
    return Named(transforms.ReadCorpus(corpus, input=input or (), **options))


def filter_urls(files: list[str]) -> Named:
    """Drop documents from blocked addresses."""
    return Named(transforms.FilterUrls(*files))


def clean(level: str = "") -> Named:
    """Clean texts and drop empty ones."""
    return Named(transforms.Clean(level))


def identify_language(languages: list[str], **options: Any) -> Named:
    """Keep texts in some languages."""
    return Named(transforms.IdentifyLanguage(*languages, **options))


def judge_quality(rules: list[str], **options: Any) -> Named:
    """Drop texts that break quality rules."""
    return Named(transforms.JudgeQuality(*rules, **options))


def decontaminate(files: list[str]) -> Named:
    """Drop texts that contain parts of benchmarks."""
    return Named(transforms.Decontaminate(*files))


def mask_personal_data() -> Named:
    """Replace personal data."""
    return Named(transforms.MaskPersonalData())


def user_filter(spec: str) -> Named:
    """Filter documents with a custom filter."""
    return Named(transforms.UserFilter(spec))


def tokenize(tokenizer: str, eos: str = "") -> Named:
    """Add tokens."""
    return Named(transforms.Tokenize(tokenizer, eos=eos))


def to_rows(columns: list[str]) -> transforms.ToRows:
    """Convert batches to rows with a schema, which Beam's own transforms and SQL understand."""
    return transforms.ToRows(*columns)


def from_rows(**options: Any) -> transforms.FromRows:
    """Convert rows to batches."""
    return transforms.FromRows(**options)


def write_dataset(output: str, tokenizer: str, **options: Any) -> "NamedInputs":
    """Write a dataset."""
    return NamedInputs(
        lambda dropped: transforms.WriteDataset(
            output, tokenizer=tokenizer, dropped=dropped, **options
        )
    )


class NamedInputs(beam.PTransform[Any, Any]):
    """WriteDataset with all its inputs in one mapping."""

    def __init__(self, make: Callable[[list[Any]], transforms.WriteDataset]) -> None:
        super().__init__()
        self._make = make

    def expand(self, inputs: PCollection[Any] | Mapping[str, PCollection[Any]]) -> Any:
        """Apply the transform.

        Raises:
            UserError: There is no input named `kept`.
        """
        if not isinstance(inputs, Mapping):
            return inputs | self._make([])
        rest = {**inputs}
        if "kept" not in rest:
            raise UserError(
                f"WriteDataset has the inputs {', '.join(sorted(rest))}: name the documents of the "
                "dataset `kept`; all other inputs are counted as dropped"
            )
        kept = rest.pop("kept")
        return kept | self._make([*rest.values()])
