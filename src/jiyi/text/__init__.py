"""Pure functions on text: language, tokens, keywords, hashes."""
