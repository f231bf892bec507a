"""memory.md and learnings.md: memories as files that a person can edit.

format.py says how one memory is written as a bullet, document.py parses a file without losing a byte, layout.py knows
which files a workspace has, safe.py reads and replaces them, plan.py decides, sync.py does it. docs/files.md is the
same for people.
"""
