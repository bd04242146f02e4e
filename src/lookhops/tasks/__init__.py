"""What is asked of a graph: head, loss, metrics and words."""
