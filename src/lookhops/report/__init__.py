"""A self-contained HTML page: what was measured, trained and compared, and what the model saw."""
