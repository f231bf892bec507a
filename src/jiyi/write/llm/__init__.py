"""Extraction by a language model. What can be proved wrong about its memories is refused."""

from .judge import judge
from .llm_extractor import LlmDrafts, LlmExtractor, llm_drafts
from .proposals import Rejected
from .support_check import SupportCheck, is_weak, verifies

__all__ = ["LlmDrafts", "LlmExtractor", "Rejected", "SupportCheck", "is_weak", "judge", "llm_drafts", "verifies"]
