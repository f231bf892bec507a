"""Hashes, token budget, prompt fence, passages and summaries of text."""
