"""The searchable copy of one user's memories: words, vectors, people and times."""
