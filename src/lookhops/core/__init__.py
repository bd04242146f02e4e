"""What every room needs: errors, words, files, schemas of JSON, hashes, tables, options."""

__version__ = "0.1.0"
