"""Reads an English clause: its subject, its verbs, and what comes after them."""

from __future__ import annotations

import re

from .english_tokens import ADVERBS, HABITUAL, VERBS, Parsed, Token, lemma, tokens
from .english_verbs import read_verbs
from .lexicon import words

_FIRST = {"i": "self", "we": "we"}
_PRONOUNS = frozenset(("he", "she", "they", "it"))
_ANYMORE = re.compile(r"\b(?:anymore|any more|any longer)\b", re.IGNORECASE)
_GERUND = re.compile(
    r"\w (?:is|isn't|are|was|wasn't|were|makes?|made|keeps?|helps?|gives?|can|has|means)\b", re.IGNORECASE
)
_LONGEST_MARKER = 5  # words


def parse(text: str, *, follows: bool = False) -> Parsed:
    """What the clause says. `follows` says that another one stands before it, whose subject it may share."""
    read = Parsed()
    toks = tokens(text)
    index = _past_from_now_on(toks, _skip_markers(toks, read))
    read.text_at = toks[index].start if index < len(toks) else len(text)
    read.subject_at = read.text_at
    if index >= len(toks):
        read.about = "other"
    elif follows and _begins_with_verb(toks, index):
        read.about, read.dropped = "same", True
    else:
        index = _subject(text, toks, index, read)
    if read.about != "other":
        read_verbs(toks, index, read)
    if read.negated and _ANYMORE.search(text):
        read.ended = True
    return read


def _skip_markers(toks: list[Token], read: Parsed) -> int:
    """Past "well", "by the way", "just so you know": words that carry nothing."""
    index = 0
    markers = words("en", "markers")
    while index < len(toks):
        for length in range(_LONGEST_MARKER, 0, -1):
            phrase = " ".join(token.word for token in toks[index : index + length])
            if phrase in markers and not _says_none(toks, index, phrase):
                read.marked |= phrase in words("en", "important markers")
                index += length
                break
        else:
            if toks[index].word not in ",:-–—…\"'*!.":
                return index
            index += 1
    return index


def _says_none(toks: list[Token], index: int, phrase: str) -> bool:
    """ "No, I moved" answers; "no more tutoring" tells, and without its "no" would tell the opposite."""
    following = toks[index + 1].word if index + 1 < len(toks) else ""
    return phrase == "no" and following in ("more", "longer")


_FROM_NOW_ON = ("from now on", "going forward", "in future", "in the future")
_BIDS = frozenset(("please", "always", "never", "don't", "answer", "reply", "respond", "write", "use", "keep", "give",
                   "call", "speak", "explain", "show", "start", "put", "address", "send", "include"))  # fmt: skip


def _past_from_now_on(toks: list[Token], index: int) -> int:
    """ "From now on answer in English" bids; "from now on no screens" decides, and needs its words."""
    for phrase in _FROM_NOW_ON:
        after = index + len(phrase.split())
        if " ".join(token.word for token in toks[index:after]) == phrase:
            after += after < len(toks) and toks[after].word == ","
            return after if after < len(toks) and toks[after].word in _BIDS else index
    return index


def _begins_with_verb(toks: list[Token], index: int) -> bool:
    while index < len(toks) and toks[index].word in ADVERBS:
        index += 1
    word = toks[index].word if index < len(toks) else ""
    if word == "let":
        return False
    return lemma(word)[0] in VERBS or word in words("en", "verb beginnings")


def _subject(text: str, toks: list[Token], index: int, read: Parsed) -> int:
    """Finds the subject and returns where the verbs begin."""
    index = _past_circumstances(toks, index, read)
    first = toks[index].word
    read.subject_at = toks[index].start
    if first in ("my", "our"):
        return _possessed(text, toks, index + 1, read)
    if first in _FIRST or first in _PRONOUNS:
        read.about = _FIRST.get(first, "pronoun")
        read.noun = "" if first in _FIRST else first
        return index + 1
    if _says_none(toks, index, first):
        # "No more tutoring": nobody is asked for it.
        read.about, read.dropped, read.ended = "self", True, True
        return index + 2
    asked = first in words("en", "asking") or (first in VERBS and not _is_noun(toks, index))
    if asked or (lemma(first)[1] == "ing" and _GERUND.search(text)):
        # "Working with people is great": that is the subject.
        read.about = "asked" if asked else "other"
        return index
    if lemma(first)[1] in ("past", "ing") or first in words("en", "verb beginnings"):
        # "Moved to Berlin!", "Going to Rome next week"
        read.about, read.dropped = "self", True
        return index
    return _named(text, toks, index, read)


def _is_noun(toks: list[Token], index: int) -> bool:
    """ "Upgrade viva passed": what looks like a request is the beginning of a subject."""
    for place in range(index + 1, min(index + 4, len(toks))):
        word = toks[place].word
        if word in words("en", "before noun") or word in _PRONOUNS or word in ("me", "you", "it", "us", "them"):
            return False
        if word in _FINITE or (lemma(word)[1] in ("past", "s") and lemma(word)[0] in VERBS):
            return True
    return False


def _past_circumstances(toks: list[Token], index: int, read: Parsed) -> int:
    """ "Last week I …", "Every Tuesday my wife …": a time or a place may stand before the subject."""
    first = toks[index].word
    if first not in words("en", "before subject") and first not in HABITUAL and not first[0].isdigit():
        return index
    for further in range(index + 1, min(index + 9, len(toks))):
        if toks[further].word in _FIRST or toks[further].word in ("my", "our"):
            read.habitual |= first in HABITUAL
            return further
    return index


def _named(text: str, toks: list[Token], index: int, read: Parsed) -> int:
    """Somebody by name, in up to three words; otherwise the clause is about something else."""
    end = index
    while end < len(toks) and end < index + 3 and text[toks[end].start].isupper() and toks[end].word.isalpha():
        end += 1
    if end > index and [token.word for token in toks[end : end + 2]] == ["and", "i"]:
        # "Anna and I moved"
        read.about = "we"
        return end + 2
    if (
        end == index
        and toks[index].word == "the"
        and index + 1 < len(toks)
        and toks[index + 1].word in words("en", "kin")
    ):
        end = index + 2
    if not (end > index and _begins_predicate(toks, end, index)):
        further = _thing(toks, index, read)
        if end == index or read.about == "thing":
            return further
    read.about = "named"
    read.name = text[toks[index].start : toks[end - 1].end]
    # "Helen Marsh, our release manager": there is no verb to look for.
    return end if _begins_predicate(toks, end, index) else len(toks)


_FINITE = words("en", "ends noun") - {"no", "not", "n't", "never", "used", "be", "been"} | {"'s", "got", "gets"}
_LONGEST_THING = 9  # words


def _thing(toks: list[Token], index: int, read: Parsed) -> int:
    """ "The lease on our flat runs out in May": something else is the subject, up to the first verb."""
    for end in range(index + 1, min(index + _LONGEST_THING, len(toks))):
        if _begins_predicate(toks, end, index):
            read.about = "thing"
            return end
    read.about = "other"
    return index


def _begins_predicate(toks: list[Token], place: int, start: int) -> bool:
    if place >= len(toks):
        return False
    word = toks[place].word
    if word in ADVERBS:
        return place + 1 < len(toks) and _begins_predicate(toks, place + 1, start)
    if word in _FINITE:
        return word != "'s" or place + 1 >= len(toks) or toks[place + 1].word not in words("en", "properties")
    base, form = lemma(word)
    if base not in VERBS or word in words("en", "kin"):
        return False
    before = toks[place - 1].word
    if form in ("s", "past"):
        return before not in words("en", "before noun")
    return form == "base" and place > start and before.endswith("s") and before not in words("en", "before noun")


def _possessed(text: str, toks: list[Token], index: int, read: Parsed) -> int:
    """ "my little sister Anna", "my favourite colour", "my dog's name": everything up to the verb."""
    start = index
    read.about = "kin"
    while index < min(start + 6, len(toks)) and not _ends_noun(toks, index, start):
        index += 1
    if index + 1 < len(toks) and toks[index].word == "and" and toks[index + 1].word in ("i", "me"):
        # "My wife and I bought a house"
        read.about = "we"
        return index + 2
    inside = toks[start:index]
    name = [token for token in inside[1:] if text[token.start].isupper()]
    nouns = inside[: inside.index(name[0])] if name else inside
    read.name = text[name[0].start : name[-1].end] if name else ""
    read.noun = " ".join(token.word for token in nouns).replace(" 's", "'s")
    return index


def _ends_noun(toks: list[Token], index: int, start: int) -> bool:
    word = toks[index].word
    if word == "'s":
        # "my dog's name" goes on, "my dog's sick" does not.
        return index + 1 >= len(toks) or toks[index + 1].word not in words("en", "properties")
    if not word[0].isalnum() or word == "and":
        return True
    if index == start:
        return False
    base, form = lemma(word)
    if form == "base" and base in VERBS and _is_plural(toks[index - 1].word):
        # "My parents live in Ohio"
        return True
    return (
        word in words("en", "ends noun")
        or word in ADVERBS
        or (form in ("s", "past") and base in VERBS and word not in words("en", "kin"))
    )


def _is_plural(word: str) -> bool:
    return word in words("en", "kin") and (word.endswith("s") or word in ("children", "grandchildren", "people"))
