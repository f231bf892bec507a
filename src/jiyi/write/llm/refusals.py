"""Refuse what can be proved wrong about a proposal of a model: its shape, its sources, its quote, and injected
instructions. Whether its text is true is a matter of confidence: see `support_check.py`."""

import re
import zlib
from collections.abc import Iterable, Sequence
from unicodedata import normalize

from ...languages import cue
from ...languages.terms import tokens
from ...languages.words import fold_traditional, normalise
from ...roles import USER_SUBJECTS, is_person, role_kind
from ...text.fence import strip_context
from ...text_cache import text_cache
from ..drafts import Evidence, Said
from ..own_words import divide
from .schema import ProposedMemory
from .transcript import LABELS, Transcript

MIN_QUOTE = 2
REPETITIVE = 0.3  # compression ratio below which a text repeats itself
MOSTLY = 0.5  # share of a memory's words that a person must have said, where it quotes an assistant
ANY_SOURCE = frozenset({"skill"})  # types of which an assistant or a tool can be the only source

_ELISION = re.compile(r"(?:…|\.{3,})+")
_MARKUP = re.compile(r"<\s*/?\s*(?:system|assistant|user|jiyi-memory)|<\|\w*\|?>?|\[/?INST\]", re.IGNORECASE)


class Refused(Exception):
    """A proposal is refused; `reason` is one of a few texts, so that they can be counted."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}" if detail else reason)


def check_text(text: str, *, own: bool) -> None:
    """Raise `Refused` for a malformed text, and for an instruction to models, unless it is made of the user's `own`
    words."""
    if not any(map(str.isalnum, text)):
        raise Refused("empty")
    if not text.isprintable() and any(not char.isprintable() and char not in "\n\t\u200c\u200d" for char in text):
        raise Refused("unreadable characters")
    if repeats_itself(text):
        raise Refused("repeats itself")
    if _MARKUP.search(text) or (not own and cue("injection").search(text)):
        raise Refused("an instruction, not a memory")


def repeats_itself(text: str) -> bool:
    """Return True if a text repeats the same words over and over."""
    packed = text.encode()
    return len(packed) >= 60 and len(zlib.compress(packed, 9)) < REPETITIVE * len(packed)


def cited_messages(numbers: Iterable[int], transcript: Transcript) -> tuple[Said, ...]:
    """Return the messages with some numbers; raise `Refused` for an unknown one."""
    cited = []
    for number in dict.fromkeys(numbers):
        if not 1 <= number <= len(transcript.messages):
            raise Refused("no such message", str(number))
        cited.append(transcript.messages[number - 1])
    return tuple(cited)


def quoted(quote: str, cited: Sequence[Said], transcript: Transcript) -> tuple[Said, Evidence]:
    """Find a quote in a cited message, or in another one if the number was wrong."""
    others = [said for said in transcript.messages if said not in cited]
    for said in (*cited, *others):
        shown = strip_context(said.text)
        span = find_quote(quote, shown)
        if span is not None:
            start = said.text.find(shown[slice(*span)])
            place = (start, start + span[1] - span[0]) if start >= 0 else (None, None)
            return said, Evidence(message_id=said.id, start=place[0], end=place[1])
    raise Refused("the quote is not in the conversation", quote[:80])


def is_own(said: Said, proof: Evidence, transcript: Transcript) -> bool:
    """Return True if a quote is in the user's own words, not pasted or quoted ones."""
    if not is_person(said.role) or said.id in transcript.others:
        return False
    start, end = proof.start or 0, len(said.text) if proof.end is None else proof.end
    return not any(map(str.isalnum, divide(said.text, start, end)[1]))


def is_of_assistant(proposed: ProposedMemory) -> bool:
    """Return True if a memory says itself that it is about an assistant's words: "The assistant suggested …"."""
    labels = [words["assistant"].casefold() for words in LABELS.values()]
    named = [(proposed.subject or "").casefold(), proposed.text.casefold().removeprefix("the ")]
    return any(name.startswith(label) for name in named for label in labels)


def teller_of_proposal(proposed: ProposedMemory, where: Said, cited: Sequence[Said], talk: Transcript) -> Said:
    """Return the message that tells a memory whose quote is in `where`: that one, or, if an assistant said it, one of a
    person who is cited too or speaks of the same. Raise `Refused` for a personal fact that no person told."""
    told = next((said for said in (where, *cited) if is_person(said.role)), None)
    if told is not None:
        return told
    by_assistant = role_kind(where.role) == "assistant"
    if proposed.type in ANY_SOURCE or (by_assistant and is_of_assistant(proposed)):
        return where
    best = _who_spoke_of(proposed.text, where, talk) if by_assistant else None
    if best is None:
        raise Refused("not said by a person")
    return best


def check_subject(proposed: ProposedMemory, cited: Sequence[Said], talk: Transcript) -> None:
    """Raise `Refused` for what another person says of themselves, "I live in Paris", told of the user."""
    people = [said for said in cited if is_person(said.role)]
    if not people or any(said.id not in talk.others for said in people):
        return
    of_user = proposed.subject is not None and normalise(proposed.subject) in USER_SUBJECTS
    if of_user and cue("speaker_alone").search(proposed.quote) and not cue("second_person").search(proposed.quote):
        raise Refused("another person said it of themselves")


def _who_spoke_of(text: str, where: Said, talk: Transcript) -> Said | None:
    """Return the message of a person that says most words of a text, or replies to an assistant with one of them."""
    wanted = _content_words(text) - _content_words(" ".join(talk.participants))
    place = talk.messages.index(where)
    shares = {
        number: len(wanted & _content_words(strip_context(said.text))) / len(wanted)
        for number, said in enumerate(talk.messages)
        if wanted and is_person(said.role)
    }
    near = [number for number, share in shares.items() if share > MOSTLY or (share and number == place + 1)]
    return talk.messages[max(near, key=lambda number: shares[number])] if near else None


def _content_words(text: str) -> frozenset[str]:
    return frozenset(word for word in tokens(text) if len(word) > 1)


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
        start = folded.find(part, at)
        if start < 0 or len(part) < MIN_QUOTE:
            return None
        first = start if first is None else first
        at = start + len(part)
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
