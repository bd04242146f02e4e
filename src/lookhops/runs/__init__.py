"""Fair comparisons on any data: the plan, the store, the runners, the statistics."""
