"""English word lists and stems."""

from collections.abc import Callable
from functools import cache

from ..base import word_set

# "no", "never" and "without" are not here: they change what a text says.
STOP_WORDS = word_set("""
    a about above after again all also am an and any anyone anything are as at be because been before being below
    between both but by can cannot could did do does doing done down during each either else ever few for from further
    had has have having he her here hers herself him himself his how however i if in into is it its itself just let
    may me might mine more most much must my myself neither nor not now of off on once only or other our ours ourselves
    out over own per please quite rather really same shall she should since so some someone something such than that
    the their theirs them themselves then there these they this those though through till to too under until up upon us
    very was we were what whatever when whenever where whether which while who whoever whom whose why will with would
    yes yet you your yours yourself yourselves
""")

# Words that nearly every memory has: true keywords, but they set nothing apart.
COMMON_KEYWORDS = word_set("""
    user assistant like likes liked want wants wanted need needs get got make made go going went know think say said
    told good thing things today last next new day days week month year years time way lot use used
""")
# Keywords that a memory type adds to its memories; "fact" is too general for one.
TYPE_KEYWORDS = {
    "preference": ("preference",),
    "task": ("task", "todo"),
    "event": ("event",),
    "episode": ("episode",),
    "profile": ("profile",),
    "pattern": ("habit",),
    "skill": ("skill",),
    "lesson": ("lesson",),
    "decision": ("decision",),
    "config": ("config", "configuration"),
    "command_output": ("command", "output"),
}
UNITS = "kg|km|cm|mm|mg|ml|kb|mb|gb|tb|hz|khz|mhz|ghz|ms|kw|kwh|mph|usd|rmb|g|m|l"

# A name, a number or an explanation follows them.
NEVER_END = word_set("""
    mr mrs ms dr prof st mt gen col sen rep rev hon capt lt sgt gov pres e.g i.e eg vs cf approx ca fig figs eq ext tel
    est ave blvd dept esp incl viz al
""")
# Only before a number: "No. 5", "Apt. 12", "Jan. 3".
END_UNLESS_NUMBER = word_set("""
    no nos apt art ch p pp vol sec pt jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs
    fri sat sun
""")
# They may also end a sentence; then the next one begins with a capital.
MAY_END = word_set("etc inc ltd co corp jr sr min mins hr hrs secs oz lb lbs ft yr yrs a.m p.m am pm")
# Before the name of a person.
TITLES = "Mr|Mrs|Ms|Miss|Dr|Prof|Professor"
KIN = (
    "sister|brother|mother|mum|mom|father|dad|wife|husband|partner|girlfriend|boyfriend|daughter|son|friend|boss|manager"
    "|colleague|neighbour|cousin|aunt|uncle"
)
# Capitalised words that name nobody and nothing.
NO_NAMES = word_set("""
    The My Our His Her Their This That A An In On At If When Please I I'm I've I'll I'd OK TV PC PIN ID FYI Wi-Fi WiFi
    English Chinese Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July
    August September October November December Mondays Tuesdays Wednesdays Thursdays Fridays Saturdays Sundays
""")
TIME_OF_DAY = frozenset({"a.m", "p.m"})


def stem(word: str) -> str:
    """Return the stem of a word in lower case: teas and tea are one. Words of every language in Latin letters are
    stemmed alike, so that texts and queries agree."""
    return _stemmer()(word)


@cache
def _stemmer() -> Callable[[str], str]:
    from Stemmer import Stemmer

    # Without its own cache a stemmer has no state that threads could spoil; `tokens` has a cache.
    stem_word: Callable[[str], str] = Stemmer("english", 0).stemWord
    return stem_word
