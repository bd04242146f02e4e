"""The paper: its tables, figures and claims, made with `lookhops.experiments`."""
