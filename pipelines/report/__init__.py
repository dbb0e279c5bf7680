"""The page that shows a run: a pure function of its report.json and manifest to HTML."""
