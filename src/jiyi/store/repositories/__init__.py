"""Statements about the rows of one kind each."""
