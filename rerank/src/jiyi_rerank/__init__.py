"""A small bilingual reranker for Jiyi: does this message answer, or bear on, this question?

    from jiyi_rerank import Candidate, LocalReranker

    reranker = LocalReranker()
    reranker.logits("Where does Mei live?", [Candidate("Mei", "We moved to Leeds last week!", age_days=3.0)])

Jiyi uses it by itself when it is installed.
"""

from .reranker import Candidate, LocalReranker

__all__ = ["Candidate", "LocalReranker"]
__version__ = "0.1.0"
