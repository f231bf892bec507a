"""Words, sentences, numbers and dates of the languages that Jiyi reads.

>>> from datetime import UTC, datetime
>>> sentences("I'm 34. I live in Rome.")
[(0, 7), (8, 23)]
>>> [plan] = dates("moved to December 20", datetime(2026, 3, 1, tzinfo=UTC), future=True)
>>> f"{plan.start:%F}", plan.text, plan.at
('2026-12-20', 'December 20', (9, 20))
"""

from .script import language
from .sentences import sentences
from .times import TimeSpan, dates

__all__ = ["TimeSpan", "dates", "language", "sentences"]
