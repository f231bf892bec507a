"""Extraction by a language model; its memories are checked against the messages."""

from .extract import LlmDrafts, LlmExtractor, Rejected, llm_drafts
from .judge import LlmJudge, judge

__all__ = ["LlmDrafts", "LlmExtractor", "LlmJudge", "Rejected", "judge", "llm_drafts"]
