"""Adapters to agent frameworks: each has a file of its own and needs the extra of the same name."""
