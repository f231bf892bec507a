"""Terms of a text: search terms, their hashes, keywords and synonyms. Texts and queries go through the same functions,
so that both always agree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from itertools import islice
from math import log2
from operator import add, itemgetter
from typing import TYPE_CHECKING, Any

from ..text_cache import text_cache
from .en import words as en
from .en.words import STOP_WORDS, stem
from .words import (
    HAN,
    LETTER,
    UNSPACED,
    composed,
    fold_case,
    inner_parts,
    is_spelled_plainly,
    is_stop_word,
    normalise,
    parts,
    pieces,
    prepared,
    prompt_language,
    without_contraction,
)
from .zh import words as zh
from .zh.words import NAME, Candidate, characters_and_pairs, cut, keyword_candidates, long_words, words_inside

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Raise it with every change that gives a text other terms, keywords or hashes: memories with a lower number are then
# indexed again in the background. 0 means unknown.
WORDS_VERSION = 2

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


def search_terms(
    of_content: Sequence[str], content: str, summary: str, tags: Iterable[str], data: Mapping[str, Any]
) -> list[str]:
    """Return the terms that a memory is found by, given those of its content. The speaker is one of them, unless a
    language model wrote the text, which then names people itself."""
    speaker = None if data.get("extractor") == "llm" else data.get("speaker")
    terms = [*of_content, *(tokens(speaker) if isinstance(speaker, str) else ())]
    if not content.startswith(summary.removesuffix("…")):
        terms.extend(tokens(summary))
    for tag in tags:
        terms.extend(tokens(tag))
    return terms


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


# Marks that shape a sentence. Not among them: ? + # % $ = < > / and the minus of a number, which change what is said.
_MARK = r"(?:[.,;:!'\"()\[\]{}*~`^|。、「」『』《》〈〉【】〔〕“”‘’„«»‹›–—·•・¡]|-(?!\d))"
# One mark inside a word belongs to it: v2.1 is not v21. Any other stands for a pause.
_PAUSE = rf"(?<!{LETTER}){_MARK}+|{_MARK}+(?!{LETTER})"
# Some write "用 Rust 写", some "用Rust写".
_SCRIPT_GAP = rf"(?<=[{HAN}]) (?={LETTER})|(?<={LETTER}) (?=[{HAN}])"

_BITS = (1 << 64) - 1
_BLOCK = 1 << 16


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    # Classes this wide take milliseconds to compile: not at import.
    return re.compile(_PAUSE), re.compile(_SCRIPT_GAP)


def content_hash(text: str) -> str:
    """Return 32 hex digits, equal for texts that differ only in case, width, script variant, spacing or sentence marks.

    >>> content_hash("我吃素。") == content_hash("我吃素")
    True
    >>> content_hash("C") == content_hash("C++")
    False
    """
    pause, script_gap = _patterns()
    whole = normalise(text)
    said = script_gap.sub("", " ".join(pause.sub(" ", whole).split()))
    # "!!!" and "???" say nothing, but not the same nothing.
    return blake2b(_encoded(said or whole), digest_size=16).hexdigest()


def exact_hash(text: str) -> str:
    """Return 32 hex digits, equal only for texts with the same characters: spelled alike is not the same password.

    >>> exact_hash("cafe\\u0301  au lait") == exact_hash("café au lait"), exact_hash("10²") == exact_hash("102")
    (True, False)
    """
    return blake2b(_encoded(" ".join(composed(text).split())), digest_size=16).hexdigest()


def near_hash(text: str) -> int:
    """Return a signed SimHash: texts that share most of their terms differ in few bits."""
    terms = tokens(text)
    return simhash(terms) if terms else term_hash(normalise(text))


def simhash(terms: Sequence[str]) -> int:
    """Return the `near_hash` of a text from its search terms."""
    import numpy as np

    ones = 0
    # In blocks, because 64 bytes for each term of a huge text would be a lot of memory.
    for start in range(0, len(terms), _BLOCK):
        hashes = np.array([term_hash(term) for term in terms[start : start + _BLOCK]], np.int64)
        ones += np.add.reduce(np.unpackbits(hashes.view(np.uint8)).reshape(-1, 64), axis=0, dtype=np.int64)
    return int(np.packbits(ones > len(terms) // 2).view(np.int64)[0])


def hamming(a: int, b: int) -> int:
    """Return the number of bits in which two hashes differ."""
    return ((a ^ b) & _BITS).bit_count()


@text_cache(1 << 15)
def term_hash(term: str) -> int:
    """Return a signed 64-bit hash of a search term."""
    return int.from_bytes(blake2b(_encoded(term), digest_size=8).digest(), "big", signed=True)


def term_counts(terms: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """Return the distinct hashes of the terms, sorted, and their counts (65535 at most)."""
    import numpy as np

    counts = Counter(map(term_hash, terms))
    hashes = sorted(counts)
    return np.array(hashes, np.int64), np.array([min(counts[one], 65535) for one in hashes], np.uint16)


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


_LONGEST = 64
_MOST_IN_QUERY = 32
_LONGEST_UNSPACED = 16

_MEASURE = 1.2
_PLAIN = 1.0
_DATE = 0.8
_NUMBER = 0.4

_COMMON = en.COMMON_KEYWORDS | zh.COMMON_KEYWORDS
_COMMON_FACTOR = 0.3

_PLAIN_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_UNIT = re.compile(rf" ?((?:{zh.UNITS})|°[cf]|(?:{en.UNITS})(?![a-z0-9]))", re.IGNORECASE)
_INSIDE = r"(?=\S)[^\n,.;!?、。{}]{{1,24}}(?<=\S)"
_QUOTES = (('"', '"'), ("“", "”"), ("「", "」"), ("『", "』"), ("《", "》"))
_QUOTED = re.compile("|".join(f"{left}({_INSIDE.format(left + right)}){right}" for left, right in _QUOTES))
_SENTENCE_END = frozenset(".!?。;:\n")
_MOST_RANKED = 20_000  # characters among whose words the keywords of a text are looked for


def keywords(text: str, *, limit: int = 5) -> list[tuple[str, float]]:
    """Return the most important words of a text, of a very long one those of its beginning, best first, each with a
    weight in (0, 1].

    >>> [word for word, weight in keywords("用户喜欢喝咖啡", limit=2)]
    ['咖啡', '用户']
    """
    ranked = _ranked(prepared(text[:_MOST_RANKED]))
    return [(word, max(round(score / ranked[0][1], 4), 0.0001)) for word, score in ranked[: max(limit, 0)]]


TYPE_WEIGHT = 0.4


def type_words(memory_type: str, text: str) -> tuple[str, ...]:
    """Return the keywords that a type adds to its memories, in the language of the text."""
    if memory_type not in en.TYPE_KEYWORDS:
        return ()
    return (en.TYPE_KEYWORDS if prompt_language(text) == "en" else zh.TYPE_KEYWORDS)[memory_type]


def query_keywords(text: str) -> list[str]:
    """Return the words of a query in the form `keywords` gives them, best first, then the words inside them."""
    return list(_query_keywords(text))


@text_cache(512)  # the same queries come again
def _query_keywords(text: str) -> list[str]:
    words = [word for word, _ in _ranked(prepared(text))[:_MOST_IN_QUERY]]
    inside = [part for word in words if len(word) > 2 for part in _words_inside(word)]
    return list(dict.fromkeys(words + inside))[:_MOST_IN_QUERY]


def _ranked(text: str) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    count: dict[str, int] = {}
    for word, base in _candidates(text) or _last_resort(text):
        best[word] = max(base, best.get(word, 0.0))
        count[word] = count.get(word, 0) + 1
    scored = [
        (word, base * _length_factor(word) * (1 + log2(count[word]) / 4) * (_COMMON_FACTOR if word in _COMMON else 1.0))
        for word, base in best.items()
    ]
    # Sorting is stable: of two equal words the one found first stays first.
    return sorted(scored, key=itemgetter(1), reverse=True)


def _length_factor(word: str) -> float:
    return 0.7 + 0.05 * min(len(word), 8) if word.isascii() else 0.9 + 0.05 * min(len(word), 5)


def _candidates(text: str) -> list[Candidate]:
    found: list[Candidate] = []
    for quoted in _QUOTED.finditer(text) if any(left in text for left, _ in _QUOTES) else ():
        phrase = normalise(quoted[quoted.lastindex or 0])
        if len(phrase) > 1 and phrase.count(" ") < 5 and any(map(str.isalnum, phrase)) and not is_stop_word(phrase):
            found.append((phrase, NAME))
    for span in pieces(text):
        piece = span.group()
        match span.lastgroup:
            case "han":
                found += keyword_candidates(piece)
            case "word" if len(piece) <= _LONGEST:
                if piece[0].isdecimal() and _PLAIN_NUMBER.fullmatch(piece):
                    found += _measure(piece, text, span.end())
                elif word := _spelled(piece):
                    found.append((word, _spelled_base(piece, text, span.start())))
            case "unspaced" if 1 < len(piece) <= _LONGEST_UNSPACED:
                found.append((normalise(piece), 0.8))
    return found


def _measure(number: str, text: str, end: int) -> list[Candidate]:
    """Return a number that ends at `end`, with the unit that follows it."""
    number = number.replace(",", "")
    if unit := _UNIT.match(text, end):
        return [(normalise(number + unit[1]), _MEASURE)]
    return [(number, _NUMBER)] if len(number) > 1 else []


@text_cache(1 << 14)
def _spelled(piece: str) -> str:
    """Return the keyword for a word of letters and digits, or an empty string."""
    word = normalise(without_contraction(piece))
    says_something = 1 < len(word) <= _LONGEST and any(map(str.isalnum, word)) and not is_stop_word(word)
    return word if says_something else ""


def _spelled_base(piece: str, text: str, start: int) -> float:
    word = without_contraction(piece)
    if is_spelled_plainly(word):
        is_name = word[0].isupper() and (word.isupper() or not _starts_sentence(text, start))
        return NAME if is_name else _PLAIN
    if not any(map(str.isalpha, word)):
        return _DATE
    # mother-in-law is an ordinary word, and so is one in an alphabet without case; user_id, v2.1 and iPhone are names.
    ordinary = word.islower() and word.replace("-", "").replace("'", "").isalpha()
    return _PLAIN if ordinary or not word.isascii() else NAME


def _starts_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 4) : start].rstrip(" \t\"'“‘「『《(*#->")
    return not before or before[-1] in _SENTENCE_END


def _last_resort(text: str) -> Iterator[Candidate]:
    """Yield stop words, digits and single characters, for a text that has nothing else."""
    for span in pieces(text):
        piece = span.group()
        if span.lastgroup == "han":
            words = cut(piece)
            for word in [word for word in words if not is_stop_word(word)] or words:
                yield bounded(word), _NUMBER
        elif any(map(str.isalnum, piece)):
            yield bounded(normalise(piece)), _NUMBER


def _words_inside(word: str) -> Iterator[str]:
    for span in pieces(word):
        piece = span.group()
        for part in words_inside(piece) if span.lastgroup == "han" else parts(piece):
            if 1 < len(part) < len(word) and not is_stop_word(part):
                yield part


_SEPARATOR = re.compile(r"[,，、]")


def builtin_synonyms(word: str) -> tuple[str, ...]:
    """Return the synonyms of a word, best first, without the word itself.

    >>> builtin_synonyms("Allergies")
    ('过敏', 'allergy', 'allergic')
    >>> builtin_synonyms("business trips")
    ('出差',)
    """
    word = normalise(word)
    table = _table()
    return next((table[form] for form in _forms(word) if form in table), ())


def words_of_line(line: str) -> list[str]:
    """Return the words of one group, normalised and each once. They are separated by | or, without it, by commas.

    >>> words_of_line("咖啡 | Coffee")
    ['咖啡', 'coffee']
    """
    words = line.split("|") if "|" in line else _SEPARATOR.split(line)
    return [word for word in dict.fromkeys(map(normalise, words)) if word]


def is_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


@cache
def _groups() -> list[list[str]]:
    listing = files(__package__).joinpath("synonyms.txt").read_text(encoding="utf-8")
    # The words are in their normal form: normalising them would take longer than the rest of a first search's words.
    return [list(map(str.strip, line.split("|"))) for line in listing.splitlines() if not is_comment(line)]


@cache
def _table() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in _groups():
        for word in group:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in group if other != word))
    return {word: tuple(others) for word, others in found.items()}


def _forms(word: str) -> Iterator[str]:
    """Yield the word and its possible base forms. A stemmer would be too bold here: it makes "business" of "busy"."""
    yield word
    if not word.isascii():
        return
    if word.endswith(("ies", "ied")):
        yield word[:-3] + "y"
    if word.endswith("s") and not word.endswith("ss"):
        yield word[:-1]
    if word.endswith("es"):
        yield word[:-2]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if len(stem) > 2 and stem != word:
            yield stem
            yield stem + "e"
            if stem[-1] == stem[-2]:
                yield stem[:-1]
