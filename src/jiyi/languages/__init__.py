"""Words, sentences, numbers and dates of the languages that Jiyi reads.

English and Chinese have a folder each; a text in any other language is stored, divided, searched and rendered as it
is. To add a language:

1. Make a folder such as `de/` with an `__init__.py` that defines a `Language`: `GERMAN = Language(code="de", ...)`.
   Fields that are left out stay neutral, so a name and a few stop words are a start.
2. Add it to `LANGUAGES` in `registry.py`; take its function words out of `FUNCTION_WORDS` in `words.py`, and let
   `words.language` return its code.
3. Dates: give `dates=DateRules(...)` rules like those of `en/dates.py`. Each is a pattern and a function that returns
   the range; `calendar.py` has the arithmetic and `dates.py` the search.
4. Add its sentences to the tables of `tests/test_languages_*.py`.

>>> from datetime import UTC, datetime
>>> sentences("I'm 34. I live in Rome.")
[(0, 7), (8, 23)]
>>> [plan] = dates("moved to December 20", datetime(2026, 3, 1, tzinfo=UTC), future=True)
>>> f"{plan.start:%F}", plan.text, plan.at
('2026-12-20', 'December 20', (9, 20))
"""

from .base import Language
from .dates import TimeSpan, dates
from .registry import LANGUAGES, NEUTRAL, as_user, cue, language_named, names_user
from .sentences import sentences
from .words import language

__all__ = [
    "LANGUAGES",
    "NEUTRAL",
    "Language",
    "TimeSpan",
    "as_user",
    "cue",
    "dates",
    "language",
    "language_named",
    "names_user",
    "sentences",
]
