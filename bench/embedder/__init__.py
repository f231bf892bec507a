"""Conversion of the built-in embedder's model, and its comparison with the package that it comes from."""
