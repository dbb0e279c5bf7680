"""The page about a run: a pure function of report.json and manifest that returns HTML."""
