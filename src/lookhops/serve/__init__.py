"""Models behind HTTP: a page for people, an API for programs, and a client for the latter."""
