"""Words of a text: its scripts and language, its normal form, and its division into words."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Literal
from unicodedata import combining, normalize

from .base import word_set
from .en.words import STOP_WORDS
from .zh.words import PARTICLES
from .zh.words import STOP_WORDS as CHINESE_STOP_WORDS

Language = Literal["zh", "en", "mixed", "other"]

# Insides of regular-expression character classes.
HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# Scripts without spaces between words, or, like hangul, with so many endings that spaces help little:
# Thai, Lao, Tibetan, Burmese, hangul, Khmer, kana, bopomofo.
UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff"
    "\u3040-\u30ff\u3100-\u318f\u31a0-\u31bf\u31f0-\u31ff\ua960-\ua97f\uac00-\ud7ff\uff66-\uffdc"
)
_LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a"

_RUN = (
    rf"(?P<han>[{HAN}]+)|(?P<cjk>[{UNSPACED}]+)|(?P<latin>[{_LATIN}]+(?:['’][{_LATIN}]+)*)"
    rf"|(?P<number>\d+(?:[.,:]\d+)*)|(?P<other>[^{HAN}{UNSPACED}{_LATIN}\d]+)"
)

# A Han character carries about as much as three Latin letters, and a long identifier no more than a short word.
_HAN_WEIGHT = 3
_LATIN_WORD_CAP = 5

_LATIN_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_LOOK = 2000


@cache
def _runs() -> re.Pattern[str]:
    # Classes this wide take milliseconds to compile: not at import.
    return re.compile(_RUN)


def width(text: str) -> int:
    """Return the length of a text, with a Chinese character as three letters."""
    return len(text) + 2 * sum("\u3400" <= char <= "\u9fff" for char in text)


def language(text: str) -> Language:
    """Return the main language of the beginning of a text; English terms inside a Chinese sentence leave it Chinese."""
    text = text[:_LONGEST_LOOK]
    if text.isascii():
        return ("other" if _is_foreign(text) else "en") if any(map(str.isalpha, text)) else "other"
    han = cjk = latin = other = 0
    english_grammar = False
    for found in _runs().finditer(text):
        script, piece = found.lastgroup, found.group()
        if script == "han":
            han += _HAN_WEIGHT * len(piece)
        elif script == "latin":
            latin += min(len(piece), _LATIN_WORD_CAP)
            # "IT" or "A" in capitals may well be a name; "I" never is.
            english_grammar |= piece == "I" or piece in STOP_WORDS
        elif script == "cjk":
            cjk += _HAN_WEIGHT * len(piece)
        elif script == "other":
            other += sum(map(str.isalpha, piece))
    total = han + cjk + latin + other
    # Japanese has kana in every sentence; one の on a Chinese label is decoration.
    if total == 0 or cjk > total / 5 or other > total / 2:
        return "other"
    share = han / (han + latin) if han + latin else 0.0
    if share >= (0.8 if english_grammar else 0.5):
        return "zh"
    if share <= 0.2:
        return "other" if not han and _is_foreign(text) else "en"
    return "mixed"


def prompt_language(text: str) -> Literal["en", "zh"]:
    """Return the language for prompts about a text: Chinese where it has Chinese sentences, English otherwise."""
    return "zh" if language(text) in ("zh", "mixed") else "en"


def _is_foreign(text: str) -> bool:
    """Return True if Latin text has more function words of other languages than English ones."""
    foreign = english = 0
    for word in _LATIN_WORD.findall(text.lower()):
        if word in STOP_WORDS:
            english += 1
        elif word in FUNCTION_WORDS or not word.isascii():
            foreign += 1
    return foreign > english


# Function words of common languages in Latin letters, without those that are English words too: enough to tell that a
# sentence is not English.
FUNCTION_WORDS = word_set("""
    ich und der das ist nicht ein eine einen mit für auf dem von zu wir sie auch habe mein meine wie nach sind wohne
    je tu il nous vous les des est et une dans pour pas que qui avec sur mon mes suis le du aux cette sont chez où
    el los las una por para con mi yo del como pero muy estoy soy vivo tengo está dónde qué
    che di non per sono gli della mio nel anche
    não com meu minha eu você uma moro
    het een ik niet van voor mijn woon
    jag och är inte det att på bor
    jest nie się saya dan yang ben bir ve
""")


# Characters nobody sees: soft hyphen, zero-width space, word joiner, byte order mark, direction marks,
# variation selectors ("❤" and "❤️" are one). The joiners U+200C and U+200D carry meaning and stay.
_INVISIBLE = "\u00ad\u200b\u200e\u200f\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" + "".join(
    map(chr, range(0xFE00, 0xFE10))
)
# NFKC leaves the typographic apostrophe and hyphen alone, but "don’t" and "don't" are one word.
_TYPEWRITER = {"\u2019": "'", "\u02bc": "'", "\u2010": "-"}
# NFKC is ten times slower on a text it has to change, and nearly every Chinese sentence has one of these.
_WIDE_MARKS = tuple(zip("，！？：；（）", ",!?:;()", strict=True))
# A superset of all combining marks, in runs no language needs.
_MOST_MARKS = 30
_MARK_RUN = re.compile(
    "[\u0300-\u036f\u0483-\u1fff\u20d0-\u20ff\u2c00-\u2fff\u302a-\u302f\u3099\u309a\ua000-\uabff\ufb00-\uffff"
    f"\U00010000-\U0010ffff]{{{_MOST_MARKS + 1},}}"
)


@cache
def simplified_table() -> dict[int, str]:
    """Return the table that translates traditional characters to simplified ones."""
    lines = files(__package__).joinpath("zh/traditional.txt").read_text("utf-8").splitlines()
    pairs = "".join(line for line in lines if not line.startswith("#"))
    return dict(zip(map(ord, pairs[::2]), pairs[1::2], strict=True))


@cache
def _plain_table() -> dict[int, str | None]:
    return {**simplified_table(), **{ord(c): None for c in _INVISIBLE}, **{ord(c): to for c, to in _TYPEWRITER.items()}}


@cache
def _to_translate() -> re.Pattern[str]:
    # Looking is ten times faster than translating, and most texts need none. `re` is only fast on classes within
    # the first plane, so any character beyond it counts as one to translate.
    keys = "".join(re.escape(chr(key)) for key in _plain_table() if key <= 0xFFFF)
    return re.compile(rf"[{keys}\U00010000-\U0010ffff]")


def fold_traditional(text: str) -> str:
    """Replace traditional Chinese characters by simplified ones."""
    return text if text.isascii() else text.translate(simplified_table())


def nfkc(text: str) -> str:
    """Return the text in NFKC, without combining marks beyond those that any language needs."""
    # CPython sorts a run of combining marks in quadratic time: 80,000 of them took 12 seconds. Unicode's own limit
    # for streams is 30. NFKC can lengthen a run, so it is cut before, for time, and after, so that twice is as once.
    text = _MARK_RUN.sub(_fewer_marks, text)
    done = normalize("NFKC", text)
    return done if done is text else _MARK_RUN.sub(_fewer_marks, done)


def _fewer_marks(run: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for char in run[0]:
        marks = marks + 1 if combining(normalize("NFKD", char)[0]) else 0
        if marks <= _MOST_MARKS:
            kept.append(char)
    return "".join(kept)


def composed(text: str) -> str:
    """Return the text in NFC. Runs of more combining marks than any language needs are left as they are."""
    if text.isascii():
        return text
    parts: list[str] = []
    end = 0
    for run in _MARK_RUN.finditer(text):
        at = run.start()
        for is_mark, chars in groupby(run[0], lambda char: combining(char) > 0):
            start, at = at, at + sum(1 for _ in chars)
            if is_mark and at - start > _MOST_MARKS:
                parts += (normalize("NFC", text[end:start]), text[start:at])
                end = at
    return "".join((*parts, normalize("NFC", text[end:])))


def plain(text: str) -> str:
    """Return the text in one width and one Chinese script, with its case and spaces."""
    if text.isascii():
        return text
    for wide, narrow in _WIDE_MARKS:
        text = text.replace(wide, narrow)
    text = nfkc(text)
    return text.translate(_plain_table()) if _to_translate().search(text) else text


def fold_case(text: str) -> str:
    """Return plain text in one case. Folding can undo NFKC, so that is applied again."""
    return text.lower() if text.isascii() else nfkc(text.casefold())


def normalise(text: str) -> str:
    """Return the form in which two texts are compared; it is idempotent.

    >>> normalise("  ＡＢＣ　臺灣龍井 ")
    'abc 台湾龙井'
    """
    return " ".join(fold_case(plain(text)).split())


# Combining marks, which \w leaves out: without them Hindi or pointed Hebrew would fall apart.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff"
)
# A letter or digit of a script that puts spaces between its words.
LETTER = rf"[^\W{HAN}{UNSPACED}]"
_SPELLED = rf"{LETTER}+(?:[{_MARKS}]+{LETTER}*)*"
# What holds an identifier together: foo::bar, https://x, C:\dir, node.js, X7-Alpha, 10:30, me@x.org, R&D, fix#5, 1,000.
_JOINT = r"(?:::|:?[/\\]{1,2}|[.\-:@'+&#]|(?<=\d),(?=\d{3}(?!\d)))"


def _word(letter: str, spelled: str) -> str:
    return rf"(?P<word>(?:(?<!-)(?<!{letter})--(?={letter}))?{spelled}(?:{_JOINT}{spelled})*(?:\+\+|[+#](?!{letter}))?)"


# Every class is disjoint from the one after it, so a match never backtracks far: linear on any input.
_PIECE = (
    rf"(?P<han>[{HAN}]+)"
    rf"|(?P<unspaced>[{UNSPACED}]+)"
    rf"|{_word(LETTER, _SPELLED)}"
    r"|(?P<emoji>[\U0001f1e6-\U0001f1ff]{2}|[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff])"
)

_WIDE_COLON = re.compile(r"(?<!\d)：|：(?!\d)")
_PART = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
_LETTERS_OR_DIGITS = re.compile(r"[a-zA-Z]+|\d+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PLURAL_ACRONYM = re.compile(r"[A-Z]{2,}s")
_CONTRACTION = re.compile(r"'(?:s|re|ll|ve|d|m)$", re.IGNORECASE)

# A longer run of letters is no camelCase name but data, such as base64.
_LONGEST_NAME = 64


@cache
def _pieces() -> re.Pattern[str]:
    # Classes this wide take milliseconds to compile: not at import.
    return re.compile(_PIECE)


@cache
def _ascii_pieces() -> re.Pattern[str]:
    """Return the pattern that finds the same pieces in ASCII text, and takes a fraction of the time to compile."""
    return re.compile(_word(r"\w", r"\w+"))


def pieces(text: str) -> Iterator[re.Match[str]]:
    """Return the words of a prepared text; `lastgroup` is the kind of each: han, unspaced, word or emoji."""
    return (_ascii_pieces() if text.isascii() else _pieces()).finditer(text)


def prepared(text: str) -> str:
    """Return the plain text, ready for `pieces`. NFKC makes ， and ： into joints, but a Chinese writer ends a clause
    with them: "用Rust：Python太慢" has two names."""
    if not text.isascii():
        text = text.replace("，", "、")
        if "：" in text:
            text = _WIDE_COLON.sub("、", text)
    return plain(text)


def without_contraction(word: str) -> str:
    """Return the word without its 's, 'll, 've and so on."""
    return _CONTRACTION.sub("", word) if "'" in word else word


def is_spelled_plainly(word: str) -> bool:
    """Return True for letters in ordinary case: tea, Tea, TEA; not iPhone, user_id, v2."""
    return word.isalpha() and (word.islower() or word.istitle() or word.isupper())


def parts(word: str) -> list[str]:
    """Return the pieces between a word's joints and underscores: a/b_c.txt gives a, b, c, txt."""
    return _PART.findall(word)


def inner_parts(part: str) -> list[str]:
    """Return the pieces inside a part: camelCase humps, and letters and digits separately. None for a plain part."""
    if len(part) > _LONGEST_NAME or not part.isascii() or part.isdigit() or is_spelled_plainly(part):
        return []
    if _PLURAL_ACRONYM.fullmatch(part):
        return [part[:-1]]
    if part.isalpha():
        return [hump for hump in _CAMEL.findall(part) if len(hump) > 1]
    stretches: list[str] = _LETTERS_OR_DIGITS.findall(part)
    # v2 and X7 are one name; gpt4 and 500g are a word or a number with something attached.
    has_word = any(len(stretch) > 1 and stretch.isalpha() for stretch in stretches)
    found: list[str] = []
    for stretch in stretches:
        if len(stretch) > 1 or (has_word and stretch.isdigit()):
            found += [stretch, *inner_parts(stretch)]
    return found


def is_stop_word(word: str) -> bool:
    """Return True if a word is too common to search for."""
    folded = normalise(word)
    english = folded.removesuffix("'s") in STOP_WORDS or folded.endswith("n't")
    return english or folded in CHINESE_STOP_WORDS or folded in PARTICLES
