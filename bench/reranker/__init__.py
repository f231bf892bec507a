"""Training, export and evaluation of the bilingual reranker."""
