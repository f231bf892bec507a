"""Extraction by a language model; its memories are checked against the messages."""

from .extract import LlmDrafts, LlmExtractor, Rejected, llm_drafts
from .judge import judge

__all__ = ["LlmDrafts", "LlmExtractor", "Rejected", "judge", "llm_drafts"]
