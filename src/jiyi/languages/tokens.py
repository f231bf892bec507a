"""Search terms for BM25: one function for texts and queries alike, so that both always agree."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import blake2b
from itertools import islice
from operator import add

from ..text_cache import text_cache
from .en.words import STOP_WORDS, stem
from .normalise import fold_case
from .script import HAN, UNSPACED
from .words import inner_parts, is_spelled_plainly, parts, pieces, prepared, without_contraction
from .zh.segment import characters_and_pairs, long_words

# Raise it with every change that gives a text other terms, keywords or hashes: memories with a lower number are then
# indexed again in the background. 0 means unknown.
WORDS_VERSION = 1

_LONGEST_TERM = 64
_DECIMAL = re.compile(r"\d{1,24}(?:,\d{3}){0,12}\.\d{1,24}")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3}){1,12}(?:\.\d{1,24})?")


def tokens(text: str) -> list[str]:
    """Return the search terms of a text, with repetition.

    >>> tokens("用户喜欢 green teas")
    ['用', '户', '喜', '欢', '用户', '户喜', '喜欢', 'green', 'tea']
    """
    text = prepared(text)
    found: list[str] = []
    han: list[str] = []
    for span in pieces(text):
        piece = span.group()
        match span.lastgroup:
            case "word":
                # The cache must not hold on to huge strings.
                found += _word_terms(piece) if len(piece) <= _LONGEST_TERM else _word_terms.__wrapped__(piece)
            case "han":
                found += characters_and_pairs(piece)
                if len(piece) > 2:
                    han.append(piece)
            case "unspaced":
                found += piece
                found += map(add, piece, islice(piece, 1, None))
            case _:
                found.append(piece)
    if han:
        found += map(bounded, long_words(" ".join(han)))
    # "The Who" or "的" alone must still be findable.
    return found or [bounded(fold_case(span.group())) for span in pieces(text)]


def non_overlapping(terms: Iterable[str]) -> list[str]:
    """Return the terms that do not overlap: in scripts without spaces the characters, without pairs and words.

    >>> non_overlapping(tokens("喜欢 green teas"))
    ['喜', '欢', 'green', 'tea']
    """
    return [term for term in terms if len(term) == 1 or not _unspaced()(term)]


def bounded(term: str) -> str:
    """Return the term, or, if it is too long, its beginning with a hash of the whole."""
    if len(term) <= _LONGEST_TERM:
        return term
    digest = blake2b(term.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return f"{term[: _LONGEST_TERM - 1 - len(digest)]}~{digest}"


@text_cache(1 << 14)
def _word_terms(word: str) -> tuple[str, ...]:
    word = without_contraction(word)
    folded = fold_case(word)
    if folded in STOP_WORDS or folded.endswith("n't"):
        return ()
    if is_spelled_plainly(word):
        return _plain_terms(folded)
    if _DECIMAL.fullmatch(folded):
        return (bounded(folded.replace(",", "")),)
    terms = [bounded(folded.replace(",", "") if _THOUSANDS.fullmatch(folded) else folded)]
    for part in parts(word):
        terms += _plain_terms(fold_case(part))
        for inner in inner_parts(part):
            terms += _plain_terms(fold_case(inner))
    # Whole and part can be the same: that is one occurrence.
    return tuple(dict.fromkeys(terms)) if any(map(str.isalnum, word)) else ()


def _plain_terms(folded: str) -> tuple[str, ...]:
    if folded in STOP_WORDS:
        return ()
    if folded.isascii() and folded.isalpha():
        return (bounded(stem(folded)),)
    return (bounded(folded),)


@cache
def _unspaced() -> Callable[[str], re.Match[str] | None]:
    return re.compile(f"[{HAN}{UNSPACED}]").match
