"""Tuning: which configuration suits these graphs best, and how much that gains."""
