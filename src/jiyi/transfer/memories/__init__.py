"""Memories that other systems kept, as candidates. Nothing here knows a database."""
