"""Fit the relevance model of `jiyi.read.relevance` and write its weights."""
