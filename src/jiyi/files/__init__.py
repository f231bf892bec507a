"""memory.md and learnings.md: memories as files that people edit. A sync scans the files (scan.py), compares them with
the index (plan.py), and applies the plan to index and files (apply.py); sync.py runs these steps. See docs/files.md."""
