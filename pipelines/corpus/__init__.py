"""What describes a run: its corpora, their records, the options and their flags."""
