"""Fair comparisons on any data: the plan, the store, the executors, the statistics."""
