"""Keeping memories in order: compress, upkeep and undo; moving them out and in, erasing them, checking them."""
