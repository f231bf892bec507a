"""Memories by a language model: it is asked once for each task, and what it says is checked against what was said."""

from .extract import LlmDrafts, LlmExtractor, llm_drafts
from .judge import LlmJudge, judge
from .propose import Rejected

__all__ = ["LlmDrafts", "LlmExtractor", "LlmJudge", "Rejected", "judge", "llm_drafts"]
