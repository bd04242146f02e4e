"""What every room needs: errors, words, files, schemas of JSON, hashes, tables, options."""
