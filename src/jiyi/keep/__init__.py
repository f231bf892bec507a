"""Keeping memories in order: moving them out and in, erasing them, checking them."""
