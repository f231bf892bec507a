"""Extraction by a language model. What can be proved wrong about its memories is refused."""

from .judge import judge
from .llm_extractor import LlmDrafts, LlmExtractor, llm_drafts
from .proposals import Rejected

__all__ = ["LlmDrafts", "LlmExtractor", "Rejected", "judge", "llm_drafts"]
