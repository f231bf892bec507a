"""Abbreviations whose full stop does not end a sentence."""

from __future__ import annotations

from ..stop_words import words

# A name, a number or an explanation follows them.
ALWAYS = words("""
    mr mrs ms dr prof st mt gen col sen rep rev hon capt lt sgt gov pres e.g i.e eg vs cf approx ca fig figs eq ext tel
    est ave blvd dept esp incl viz al
""")
# Only before a number: "No. 5", "Apt. 12", "Jan. 3".
BEFORE_NUMBER = words("""
    no nos apt art ch p pp vol sec pt jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs
    fri sat sun
""")
# They may also end a sentence; then the next one begins with a capital.
MAY_END = words("etc inc ltd co corp jr sr min mins hr hrs secs oz lb lbs ft yr yrs a.m p.m am pm")
TIME_OF_DAY = frozenset({"a.m", "p.m"})
