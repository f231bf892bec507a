"""Check that a memory of a model is grounded in the messages: sources, quote, numbers, names, dates, language. This
cannot prove that a memory is right. It ensures that its quote exists, that it shares words with its sources, and that
it has no number, name or date that was not said."""

import re
import zlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from unicodedata import normalize

from ...languages.dates import TimeSpan, dates
from ...languages.en import ENGLISH
from ...languages.en.relative_dates import english_number
from ...languages.terms import tokens
from ...languages.words import fold_traditional, language, nfkc
from ...languages.zh import CHINESE
from ...languages.zh.dates import chinese_number
from ...roles import is_person
from ...text.fence import strip_context
from ...text_cache import text_cache
from ..drafts import Evidence, Known, Said
from .claims import Claims
from .cues import ENDS, FILLERS, SHORT_NAME
from .dates import said_times
from .retracted import Retracted
from .spoken import Spoken, depends
from .transcript import LABELS, Transcript, name_of

MIN_QUOTE = 2
MONTH = timedelta(days=28)
SOME_DAYS = timedelta(days=8)  # a longer time does not support a day in it
NEAR = 8  # messages before and after that cited words may refer to
MIN_SHARE = 0.3  # of a memory's words that must be in the conversation
REPETITIVE = 0.3  # compression ratio below which a text repeats itself


class Unsupported(Exception):
    """A proposal is rejected; `reason` is one of a few texts, so that they can be counted."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}" if detail else reason)


class Ungrounded(Unsupported):
    """The quote of a proposal was said, but the proposal says something else."""


class NotMeant(Ungrounded):
    """The speaker does not mean the quoted words: no part of the proposal is kept."""


def _words(listing: str) -> frozenset[str]:
    return frozenset(listing.split())


# Prompt injections; a memory of one would be repeated to models.
_INJECTION = re.compile(
    r"(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+|the\s+|your\s+)*(?:previous|prior|above|earlier|system)"
    r"|(?:system|developer)\s+(?:prompt|message|instruction)|you\s+are\s+now\b|new\s+instructions?\b|jailbreak"
    r"|<\s*/?\s*(?:system|assistant|user|jiyi-memory|\|)|<\|\w+\|>|\[/?INST\]"
    r"|(?:忽略|无视|忘记|忘掉)(?:你)?(?:之前|以上|前面|上面|先前|所有|一切|此前)|系统(?:提示|指令|消息)|(?:你|您)现在是|新的?指令",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:I|I['’]\w+|me|my|mine|myself|we|our|ours|us)\b|我|咱")
_SECOND_PERSON = re.compile(r"\byou(?:rs?|['’]\w+)?\b|[你您]", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“「『《][^\"“「『《”」』》]*[\"”」』》]")
_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")
_CHINESE_NUMERAL = re.compile("[零一二两三四五六七八九十百]{1,5}")
_CAPITALISED = re.compile(r"(?<![\w.!?:;\"“(—-])(?<![.!?:;—] )(?<!^)\b([A-Z][\w’'-]+)")
_CALENDAR = _words("""
    january february march april may june july august september october november december monday tuesday wednesday
    thursday friday saturday sunday jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun am pm
    utc
""")
_ELISION = re.compile(r"(?:…|\.{3,})+")


def well_formed(text: str, languages: frozenset[str], *, as_spoken: bool = False) -> None:
    """Raise `Unsupported` for a malformed text. `as_spoken`: the first person is allowed."""
    if not any(map(str.isalnum, text)):
        raise Unsupported("empty")
    if not text.isprintable() and any(not char.isprintable() and char not in "\n\t\u200c\u200d" for char in text):
        raise Unsupported("unreadable characters")
    if repeats_itself(text):
        raise Unsupported("repeats itself")
    if _INJECTION.search(text):
        raise Unsupported("an instruction, not a memory")
    told = "" if as_spoken else _QUOTED.sub("", text)
    if _FIRST_PERSON.search(told):
        raise Unsupported("in the first person")
    if _SECOND_PERSON.search(told):
        raise Unsupported("in the second person")
    if language(text) not in languages:
        raise Unsupported("in another language")


def languages_of(messages: Sequence[Said]) -> frozenset[str]:
    """Return the languages that a memory of these messages may be in."""
    spoken = language(" ".join(strip_context(said.text) for said in messages))
    return {"en": frozenset({"en"}), "zh": frozenset({"zh", "mixed"})}.get(
        spoken, frozenset({"en", "zh", "mixed", "other"})
    )


def repeats_itself(text: str) -> bool:
    """Return True if a text repeats the same words over and over."""
    packed = text.encode()
    return len(packed) >= 60 and len(zlib.compress(packed, 9)) < REPETITIVE * len(packed)


class Grounding:
    """The messages of a unit, prepared for checks."""

    def __init__(self, transcript: Transcript, history: Sequence[Said] = (), known: Sequence[Known] = ()) -> None:
        self._transcript = transcript
        self._all = (*history, *transcript.messages)
        self._known = known
        self._names = {name_of(said, transcript.language) for said in self._all}

    def said(self) -> list[tuple[str, str]]:
        """Return speakers and texts of all messages."""
        return [(name_of(said, self._transcript.language), strip_context(said.text)) for said in self._all]

    def sources(self, numbers: Iterable[int]) -> tuple[Said, ...]:
        found = []
        for number in dict.fromkeys(numbers):
            if not 1 <= number <= len(self._transcript.messages):
                raise Unsupported("no such message", str(number))
            found.append(self._transcript.messages[number - 1])
        return tuple(found)

    def quoted(self, quote: str, cited: Sequence[Said]) -> tuple[Said, Evidence]:
        """Find the quote in a cited message, or in another one if the number was wrong."""
        others = [said for said in self._transcript.messages if said not in cited]
        for said in (*cited, *others):
            span = find_quote(quote, strip_context(said.text))
            if span is not None:
                start = said.text.find(strip_context(said.text)[slice(*span)])
                place = (start, start + span[1] - span[0]) if start >= 0 else (None, None)
                return said, Evidence(message_id=said.id, start=place[0], end=place[1])
        raise Unsupported("the quote is not in the conversation", quote[:80])

    def supported(self, text: str, cited: Sequence[Said]) -> float:
        """Return the share of the text's words that were said; raise if anything in it is made up."""
        said_words = self._words
        words = _content_words(text)
        share = len(words & said_words) / len(words) if words else 0.0
        own = _content_words(" ".join(strip_context(said.text) for said in cited))
        if share < MIN_SHARE or not words & own:
            raise Unsupported("not what was said")
        self._check_numbers(self._without_dates(text, cited), text)
        self._check_names(text)
        return share

    def claimed(self, text: str, quote: str, cited: Sequence[Said]) -> None:
        """Raise if a memory claims anything else than the words it cites."""
        place = max((at for at, said in enumerate(self._all) if said in cited), default=0)
        near = [said for said in self._all[max(0, place - NEAR) : place + NEAR] if said not in cited]
        alone = not depends(quote)  # then an assistant's words say nothing about it
        near = [said for said in near if is_person(said.role) or not alone]
        context = [f"{said.speaker or ''}: {strip_context(said.text)}" for said in near]
        context += [one.text for one in self._known]
        at = self._all.index(cited[0]) if cited[0] in self._all else 0
        answered = strip_context(self._all[at - 1].text) if at else ""
        speaking = [said for said in cited if is_person(said.role)] or cited
        speakers = self._transcript.speakers(speaking)

        def fail(reason: str, detail: str) -> None:
            raise Ungrounded(reason, detail[:80])

        rest = list(text)
        for span in dates(text, cited[0].sent_at):
            rest[slice(*span.at)] = " " * (span.at[1] - span.at[0])
        spoken = Spoken([strip_context(said.text) for said in cited], quote, context, answered, speakers)
        if reason := Retracted(spoken, self._next_words(cited[0])).reason(text):
            raise NotMeant(reason, text[:80])
        Claims(spoken, fail).check("".join(rest))

    def _next_words(self, said: Said) -> str:
        """Return the next message if it is by the same person."""
        at = self._all.index(said) + 1 if said in self._all else 0
        following = self._all[at] if 0 < at < len(self._all) else None
        same = following is not None and (following.role, following.speaker) == (said.role, said.speaker)
        return strip_context(following.text) if following is not None and same else ""

    def may_end(self, known: Known, text: str, cited: Sequence[Said]) -> bool:
        """Return True if a memory can be what ends a known one: both are about the same thing, or a change was said."""
        said = " ".join(strip_context(one.text) for one in cited)
        return self._share(known.text, f"{text} {said}") or ENDS.search(said) is not None

    def ends_in_own_words(self, ended: Iterable[Known], cited: Sequence[Said]) -> bool:
        """Return True if the messages themselves speak of known memories and of a change."""
        said = " ".join(strip_context(one.text) for one in cited)
        return ENDS.search(said) is not None and all(self._share(one.text, said) for one in ended)

    def knows(self, words: str) -> bool:
        """Return True if a name or a value is in the conversation."""
        wanted = _folded(words)[0]
        return bool(wanted) and (wanted in self._folded_all or any(wanted == _folded(n)[0] for n in self._names))

    def knows_part(self, words: str) -> bool:
        """Return True if a word of a description ("Mei's shop") is in the conversation or a known memory."""
        return bool(_content_words(words) & (self._words | self._known_words))

    def day_of(self, written: str, cited: Sequence[Said]) -> datetime | None:
        """Return a day of a model, if the messages mention it or were sent on it."""
        try:
            day = datetime.fromisoformat(written)
        except ValueError:
            return None
        day = day.replace(tzinfo=day.tzinfo or cited[0].sent_at.tzinfo, hour=12, minute=0, second=0, microsecond=0)
        spoken_of = any(start <= day < end for start, end in self._days(cited))
        return day.replace(hour=0) if spoken_of else None

    @cached_property
    def _text(self) -> str:
        return "\n".join(strip_context(said.text) for said in self._all)

    @cached_property
    def _folded_all(self) -> str:
        return _folded(self._text)[0]

    @cached_property
    def _words(self) -> set[str]:
        labels = " ".join(label for words in LABELS.values() for label in words.values())
        return _content_words(f"{self._text} {' '.join(self._names)} {labels}")

    @cached_property
    def _known_words(self) -> set[str]:
        return _content_words(" ".join(one.text for one in self._known))

    @cached_property
    def _times(self) -> list[TimeSpan]:
        return [span for said in self._all for span in _spans(said)]

    @cached_property
    def _numbers(self) -> set[str]:
        found = set(_numbers_in(self._text))
        moments = [said.sent_at for said in self._all]
        for span in self._times:
            moments += (span.start, span.end - timedelta(seconds=1))
        for at in moments:
            for delta in (0, 1):  # the end of a span may be said as the day after it
                day = at + timedelta(days=delta)
                found |= {str(day.year), str(day.month), str(day.day), f"{day:%m}", f"{day:%d}"}
            found |= {str(at.hour), str(at.hour % 12 or 12), f"{at:%M}", f"{at:%H:%M}", f"{at.hour}:{at:%M}"}
        return found

    def _days(self, cited: Sequence[Said]) -> list[tuple[datetime, datetime]]:
        """Return the times that messages mention, or the times they were sent."""
        spoken = [span for said in cited for span in _spans(said)]
        if spoken:
            return [(span.start, span.end) for span in spoken]
        return [(said.sent_at - timedelta(days=1), said.sent_at + timedelta(days=1)) for said in cited]

    def mentions(self, span: TimeSpan, cited: Sequence[Said]) -> bool:
        """Return True if the messages mention a time, or it is relative."""
        day = span.end - span.start <= timedelta(days=1)
        spoken = [(start, end) for start, end in self._days(cited) if not (day and end - start > SOME_DAYS)]
        if span.relative and not (day and re.search(r"\d", span.text) and any(_spans(said) for said in cited)):
            return True
        later = span.start.replace(year=span.start.year + 1) if span.relative and span.start.day < 29 else span.start
        if any(
            start < moment + (span.end - span.start) and moment < end
            for start, end in spoken
            for moment in (span.start, later)
        ):
            return True
        if span.end - span.start >= MONTH and any(span.start <= said.sent_at < span.end for said in cited):
            return True  # "as of March 2025"
        if day and any(start.strftime("%m%d") == f"{span.start:%m%d}" for start, _ in spoken):
            return False  # of another year
        return any(_names_time(strip_context(said.text), span, said.sent_at) for said in cited)

    def _known_date(self, span: TimeSpan, text: str, cited: Sequence[Said]) -> bool:
        """Return True if a memory or message about the same thing has the date, and the cited words have no other."""
        other = [(start, end) for said in cited for start, end in self._days_of(said) if end - start <= SOME_DAYS]
        if other and not any(_names_weekday(strip_context(said.text), span.start) for said in cited):
            return False
        told = [(one.text, list(dates(one.text, one.at))) for one in self._known]
        told += [(strip_context(said.text), _spans(said)) for said in self._all]
        longest = max(SOME_DAYS, span.end - span.start)
        return any(
            its.start < span.end and span.start < its.end and its.end - its.start <= longest and self._share(one, text)
            for one, spans in told
            for its in spans
        )

    def _known_number(self, number: str, text: str) -> bool:
        """Return True if a known memory about the same thing has the number."""
        return any(number in _numbers_in(one.text) and self._share(one.text, text) for one in self._known)

    def _share(self, one: str, other: str) -> bool:
        """Return True if two texts share a word that is neither a number nor the name of a speaker."""
        names = _content_words(" ".join(self._names))
        return any(not word.isdigit() for word in (_content_words(one) & _content_words(other)) - names - FILLERS)

    @staticmethod
    def _days_of(said: Said) -> list[tuple[datetime, datetime]]:
        return [(span.start, span.end) for span in _spans(said)]

    def _check_numbers(self, rest: str, text: str) -> None:
        """Raise for a number of `rest`, the text without days, that was not said."""
        for number in _DIGITS.findall(nfkc(rest)):
            plain = number.replace(",", "")
            if plain not in self._numbers and plain.lstrip("0") not in self._numbers:
                parts = plain.split(":")
                new = len(parts) == 1 or any(part.lstrip("0") not in self._numbers for part in parts if part.strip("0"))
                if new and not self._known_number(plain, text):
                    raise Unsupported("a number that was not said", number)

    def _check_names(self, text: str) -> None:
        for name in SHORT_NAME.findall(text):
            if not self.knows(name) and not any(contains(name, one.text) for one in self._known):
                raise Unsupported("a name that was not said", name)
        for name in _CAPITALISED.findall(text):
            word = re.sub(r"['’]s?$", "", name)
            if word.lower() in _CALENDAR or word.lower() in ENGLISH.stop_words or self.knows(word):
                continue
            if not set(tokens(word)) <= self._words | self._known_words:
                raise Unsupported("a name that was not said", word)

    def _without_dates(self, text: str, cited: Sequence[Said]) -> str:
        """Remove days from a text; raise for a day that was not mentioned. Longer times stay: their numbers, such as
        years, must have been said."""
        rest = list(text)
        for span in dates(text, cited[0].sent_at):
            if not (self.mentions(span, cited) or self._known_date(span, text, cited)):
                raise Unsupported("a date that was not said", span.text)
            if span.end - span.start <= SOME_DAYS:
                rest[slice(*span.at)] = " " * (span.at[1] - span.at[0])
        return "".join(rest)


def _names_time(text: str, span: TimeSpan, said_at: datetime) -> bool:
    """Return True if a text names a day by its weekday, number or month, or a month: "the 28th", "from June"."""
    day, distance = span.start, (span.start - said_at).days
    if -8 <= distance <= 8 and _names_weekday(text, day):
        return True
    if -31 <= distance <= 62 and re.search(rf"(?<!\d){day.day}(?:st|nd|rd|th|号|日)", text):
        return True
    month = f"{day:%b}(?:{f'{day:%B}'[3:]})?"
    if not -62 <= distance <= 330:
        return False
    if span.end - span.start > SOME_DAYS:
        return span.grain == "month" and bool(re.search(rf"\b{month}\b|(?<!\d){day.month}月", text, re.IGNORECASE))
    numbers = {day.day, (day - timedelta(days=1)).day} if span.grain == "range" else {day.day}  # a weekend of Friday
    either = "|".join(map(str, sorted(numbers)))
    number = rf"(?<!\d)(?:{either})(?:st|nd|rd|th)?\b"
    named = rf"\b{month} (?:the )?{number}|{number} (?:of )?{month}\b|(?<!\d){day.month}月(?:{either})(?!\d)"
    return re.search(named, text, re.IGNORECASE) is not None


def _names_weekday(text: str, day: datetime) -> bool:
    weekday = rf"\b{day:%a}(?:\w*day)?s?\b|[周期拜]{'一二三四五六日'[day.weekday()]}"
    return re.search(weekday, text, re.IGNORECASE) is not None


def _spans(said: Said) -> list[TimeSpan]:
    return said_times(strip_context(said.text), said.sent_at)


def said_by_people(messages: Sequence[Said]) -> bool:
    return any(is_person(said.role) for said in messages)


def find_quote(quote: str, text: str) -> tuple[int, int] | None:
    """Return the span of a quote in a text, ignoring width, case, spaces and punctuation; "…" skips words.

    >>> find_quote("moved to … berlin", "I moved to sunny Berlin.")
    (2, 23)
    """
    folded, places = _folded(text)
    at, first = 0, None
    for part in filter(None, (_folded(part)[0] for part in _ELISION.split(quote))):
        found = folded.find(part, at)
        if found < 0 or len(part) < MIN_QUOTE:
            return None
        first = found if first is None else first
        at = found + len(part)
    return None if first is None else (places[first], places[at - 1] + 1)


def contains(words: str, text: str) -> bool:
    """Return True if the text contains the words, ignoring width and case."""
    return bool(wanted := _folded(words)[0]) and wanted in _folded(text)[0]


@text_cache(256)
def _folded(text: str) -> tuple[str, list[int]]:
    """Return letters and digits in one width, script and case, and their positions."""
    letters: list[str] = []
    places: list[int] = []
    for place, char in enumerate(fold_traditional(text)):
        for letter in normalize("NFKC", char).casefold():
            if letter.isalnum():
                letters.append(letter)
                places.append(place)
    return "".join(letters), places


def _content_words(text: str) -> set[str]:
    """Return stems of words, and single Chinese characters except the most common ones."""
    return {term for term in tokens(text) if (len(term) == 1 or term.isascii()) and term not in CHINESE.stop_words}


def _numbers_in(text: str) -> Iterable[str]:
    folded = nfkc(text)
    for number in _DIGITS.findall(folded):
        yield number.replace(",", "")
        yield from re.split(r"[.,:]", number)
    for numeral in _CHINESE_NUMERAL.findall(folded):
        yield str(chinese_number(numeral))
    for word in re.findall(r"[a-z]+", folded.lower()):
        try:
            yield str(english_number(word))
        except KeyError:
            continue
