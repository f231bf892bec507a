"""The reader: one small learned model that makes three judgements about texts.

Does a statement answer a question? Does a newer statement end or repeat an older one? Do messages support a memory?
All calls are plain and cost CPU time: call them in a thread (`threads.run`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..roles import teller_of

if TYPE_CHECKING:
    from ..settings import Settings

USER = "user"
WEIGHTS = Path(__file__).parents[1] / "weights"


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to judge, with who said it and the message before it. The user's own words have the speaker "user"."""

    text: str
    speaker: str = USER
    before: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Probabilities that a newer statement ends an older one, repeats it, or leaves it as it is."""

    ends: float
    repeats: float
    stands: float


def told(text: str, data: Mapping[str, object], user_id: str) -> Passage:
    """Return a text with its teller, as statements are compared; `data` is the memory's."""
    teller = teller_of(data, user_id)
    return Passage(text, USER if teller is None else teller.name or "")


class Reader(Protocol):
    """Judges pairs of texts. A pair's result never depends on the pairs it is asked with."""

    @property
    def id(self) -> str:
        """Name and version of the model: results of two readers with one id are the same."""

    def answers(self, question: str, passages: Sequence[Passage]) -> Sequence[float | None]:
        """Return a logit for each passage: does it answer the question, or bear on the request? None: in a language
        that the reader does not know."""

    def changes(self, newer: Passage, older: Sequence[Passage]) -> Sequence[Verdict | None]:
        """Judge what the newer statement does to each older one; None as above."""

    def supports(self, messages: Sequence[Passage], memory: str) -> float | None:
        """Return the probability that the messages support the memory; None as above."""


def resolve(settings: Settings, given: Reader | None) -> Reader | None:
    """Return the reader to use: the given one, else the one of the package unless the settings turn it off."""
    return _packaged() if given is None and settings.search.reader else given


@cache
def _packaged() -> Reader:
    """Return the reader of the package. Its networks are in memory once per process."""
    from .onnx_reader import OnnxReader

    return OnnxReader(WEIGHTS)


def unused_because(settings: Settings) -> str:
    """Return the reason why hits are not read."""
    return "turned off by search.reader" if not settings.search.reader else f"unused by {settings.search.preset}"
