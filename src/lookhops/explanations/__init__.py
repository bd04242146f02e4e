"""Which parts of a graph an answer rests on, and how true such explanations are."""
