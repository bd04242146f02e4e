"""The sections of a page, one a file: what is said, and its charts."""
