"""The messages of a Kafka topic become a dataset: a generation every ten minutes.

python kafka_stream.py BROKER:9092 TOPIC OUTPUT TOKENIZER --runner=FlinkRunner …

It needs Java for Beam's Kafka transform, and a broker; it has not been run here. Each message is
JSON with `url` and `text`.
"""

import sys

import apache_beam as beam
from apache_beam.io.kafka import ReadFromKafka
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from apache_beam.transforms.window import FixedWindows
from inbox_stream import Page, pages

from pipelines.transforms import Clean, FromRows, IdentifyLanguage, Steps, WriteDataset


def main(broker: str, topic: str, output: str, tokenizer: str, *flags: str) -> None:
    """Run the pipeline until it is stopped."""
    options = PipelineOptions([*flags], streaming=True)
    reading = ReadFromKafka(
        {"bootstrap.servers": broker, "group.id": "corpusmill", "auto.offset.reset": "earliest"},
        [topic],
        timestamp_policy=ReadFromKafka.create_time_policy,
        commit_offset_in_finalize=True,
    )
    windows = beam.WindowInto(
        FixedWindows(600),
        trigger=AfterWatermark(late=AfterCount(1)),
        accumulation_mode=AccumulationMode.DISCARDING,
        allowed_lateness=3600,
    )
    with beam.Pipeline(options=options) as pipeline:
        lines = pipeline | reading | windows | beam.MapTuple(lambda _, value: value.decode())
        rows = lines | beam.FlatMap(pages).with_output_types(Page)
        steps = rows | FromRows(id="url") | Steps(Clean(), IdentifyLanguage("zh", "en"))
        _ = steps.kept | WriteDataset(output, tokenizer=tokenizer, dropped=[steps])


if __name__ == "__main__":
    main(*sys.argv[1:])
