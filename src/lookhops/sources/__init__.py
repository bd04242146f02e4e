"""Where graphs come from: rows of tables, molecules, the TU collection, bundled sets; splits."""
