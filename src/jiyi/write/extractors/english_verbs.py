"""Reads an English verb group from left to right: auxiliaries, negation, adverbs, and verbs that take another verb.

One small function for each kind of word. It notes what the word says and returns where to go on; the group is over
when `read.verb` is set.
"""

from __future__ import annotations

from collections.abc import Callable

from .english_tokens import ADVERBS, HABITUAL, VERBS, Parsed, Token, lemma
from .lexicon import named, words

_DOUBTS = frozenset(("maybe", "perhaps", "possibly", "probably"))


def read_verbs(toks: list[Token], index: int, read: Parsed) -> None:
    read.verb_at = toks[index].start if index < len(toks) else 0
    while index < len(toks) and not read.verb:
        word = toks[index].word
        step = _STEPS.get(word) or (_adverb if word in ADVERBS else _verb)
        index = step(toks, index, read)


def _word(toks: list[Token], index: int) -> str:
    return toks[index].word if index < len(toks) else ""


def _found(read: Parsed, base: str, toks: list[Token], index: int) -> int:
    read.verb = base
    read.rest_at = toks[index + 1].start if index + 1 < len(toks) else toks[index].end
    return index + 1


def _negation(toks: list[Token], index: int, read: Parsed) -> int:
    read.negated = True
    return index + 1


def _no(toks: list[Token], index: int, read: Parsed) -> int:
    """ "no longer" """
    if _word(toks, index + 1) in ("longer", "more"):
        read.ended = True
        return index + 2
    return _verb(toks, index, read)


def _adverb(toks: list[Token], index: int, read: Parsed) -> int:
    word = toks[index].word
    read.habitual |= word in HABITUAL
    read.doubtful |= word in _DOUBTS
    return index + 1


def _kind_of(toks: list[Token], index: int, read: Parsed) -> int:
    return index + 2 if _word(toks, index + 1) == "of" else _verb(toks, index, read)


def _used(toks: list[Token], index: int, read: Parsed) -> int:
    if _word(toks, index + 1) == "to":
        read.ended = read.past = True
        return index + 2
    return _verb(toks, index, read)


def _do(toks: list[Token], index: int, read: Parsed) -> int:
    following = _word(toks, index + 1)
    if following in ("n't", "not") or following in VERBS:
        read.past |= toks[index].word == "did"
        return index + 1
    return _verb(toks, index, read)


def _will(toks: list[Token], index: int, read: Parsed) -> int:
    read.future = True
    return index + 1


def _would(toks: list[Token], index: int, read: Parsed) -> int:
    following, after = _word(toks, index + 1), _word(toks, index + 2)
    if toks[index].word == "'d" and (following in words("en", "participles") or following == "been"):
        read.perfect = read.past = True
    elif following == "rather":
        return _found(read, "rather", toks, index + 1)
    elif {following, after} & {"like", "love", "prefer", "rather", "hate"}:
        read.chain.append("would")
    elif following == "better":
        read.chain.append("must")
        return index + 2
    else:
        read.conditional = True
    return index + 1


def _modal(toks: list[Token], index: int, read: Parsed) -> int:
    word = toks[index].word
    read.doubtful |= word in ("might", "may") or (word == "must" and _word(toks, index + 1) == "have")
    read.conditional |= word == "could" and _word(toks, index + 1) not in ("n't", "not")
    read.chain.append({"should": "should", "must": "must", "ought": "should"}.get(word, "can"))
    return index + (2 if word == "ought" else 1)


def _have(toks: list[Token], index: int, read: Parsed) -> int:
    word, following = toks[index].word, _word(toks, index + 1)
    if following == "to" and word != "'ve":
        read.chain.append("must")
        read.past |= word == "had"
        return index + 2
    if following == "got":
        if _word(toks, index + 2) == "to":
            read.chain.append("must")
            return index + 3
        return _found(read, "have", toks, index + 1)
    if _participle_follows(toks, index + 1):
        read.perfect = True
        return index + 1
    read.past |= word == "had"
    read.progressive |= word == "having"
    return _found(read, "have", toks, index)


def _participle_follows(toks: list[Token], index: int) -> bool:
    """Whether "have" is an auxiliary here: a participle comes, after adverbs at most."""
    while _word(toks, index) in ADVERBS or _word(toks, index) in ("not", "n't", "never"):
        index += 1
    word = _word(toks, index)
    return word in words("en", "participles") or (word.endswith("ed") and lemma(word)[0] in VERBS)


def _be(toks: list[Token], index: int, read: Parsed) -> int:
    """After a form of be: "going to", an -ing form, or what somebody is."""
    read.past |= toks[index].word in ("was", "were")
    index += 1
    while index < len(toks):
        word, following = toks[index].word, _word(toks, index + 1)
        if word in ("not", "n't", "never"):
            read.negated = True
            index += 1
        elif word == "no" and following == "longer":
            read.ended = True
            index += 2
        elif word in ADVERBS and not word.endswith("ed"):
            index = _adverb(toks, index, read)
        else:
            break
    return _after_be(toks, index, read)


def _after_be(toks: list[Token], index: int, read: Parsed) -> int:
    word, following, after = _word(toks, index), _word(toks, index + 1), _word(toks, index + 2)
    if following == "to" and (word == "about" or (word == "going" and (after in VERBS or after == "be"))):
        read.future = True
        return index + 2
    if word == "supposed" and following == "to":
        read.chain.append("must")
        return index + 2
    if word.endswith("ing") and lemma(word)[1] == "ing" and len(word) > 5:
        read.progressive = True
        return index
    read.verb = "be"
    read.rest_at = toks[index].start if index < len(toks) else toks[-1].end
    return index


def _verb(toks: list[Token], index: int, read: Parsed) -> int:
    if not toks[index].word[0].isalnum():
        return len(toks)
    base, form = lemma(toks[index].word)
    read.past |= form == "past" and not read.perfect
    # "I'd like to" is a wish, "I like to" a taste.
    further = 0 if base in _TASTES and "would" not in read.chain else _chained(base, toks, index)
    if not further:
        read.progressive |= form == "ing"
        return _found(read, base, toks, index)
    read.chain.append(base)
    read.ended |= base in ("stop", "quit", "give")
    read.begun |= base in ("start", "begin")
    return further


def _chained(base: str, toks: list[Token], index: int) -> int:
    """Where the next verb stands, if this one takes another: "plan to move", "stopped smoking"; otherwise 0."""
    links = named("en", "chains").get(base, "").split("+")
    index += 1
    while index + 1 < len(toks) and toks[index].word in links:
        link, following = toks[index].word, toks[index + 1].word
        index += 1
        if lemma(following)[1] == "ing" or (link == "to" and following.isalpha() and following not in _ARTICLES):
            return index
    base, form = lemma(_word(toks, index))
    return index if "-ing" in links and form == "ing" and base in VERBS else 0


_TASTES = frozenset(("like", "love", "enjoy", "hate", "dislike", "prefer"))
_ARTICLES = frozenset(("the", "a", "an", "my", "your", "this", "that"))
_STEPS: dict[str, Callable[[list[Token], int, Parsed], int]] = {
    **dict.fromkeys(("not", "n't", "never", "neither", "hardly", "barely"), _negation),
    **dict.fromkeys(("kind", "sort"), _kind_of),
    **dict.fromkeys(("do", "does", "did"), _do),
    **dict.fromkeys(("will", "'ll", "shall"), _will),
    **dict.fromkeys(("would", "'d"), _would),
    **dict.fromkeys(("can", "could", "should", "must", "might", "may", "ought"), _modal),
    **dict.fromkeys(("am", "'m", "is", "are", "'re", "was", "were", "'s", "be", "been"), _be),
    **dict.fromkeys(("have", "has", "had", "'ve", "having"), _have),
    "no": _no,
    "used": _used,
}
