"""Measuring how well memories are found, on public benchmarks or files of your own: `jiyi bench`, docs/evaluation.md.

It stands on the public API alone: what it measures is what a caller gets.
"""
