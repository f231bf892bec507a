"""Rows that are checked, aged, exported, or kept in step with files and engines."""
