"""A test of a language model: ten sentences in which one that reads carelessly goes wrong. `jiyi doctor` runs it."""

import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from ...llm.client import LLMClient
from ..drafts import Said, Unit
from .llm_extractor import propose
from .transcript import transcript

ENOUGH = 8  # items
AT = datetime(2026, 5, 4, 9, tzinfo=UTC)
USER = "jiyi-self-test"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """Outcome of a test."""

    model: str
    right: int
    items: int
    wrong: tuple[str, ...]  # sentences that it got wrong

    @property
    def passed(self) -> bool:
        return self.right >= ENOUGH


async def self_test(llm: LLMClient) -> SelfTest:
    """Let a model find memories in ten sentences, in one request for each language. Raise `LlmError`."""
    items: list[dict[str, Any]] = tomllib.loads(files(__package__).joinpath("self_test.toml").read_text("utf-8"))[
        "item"
    ]
    wrong: list[str] = []
    for language in ("en", "zh"):
        own = [item for item in items if item["language"] == language]
        said = [Said(id=str(at), role="user", speaker=None, text=one["said"], sent_at=AT) for at, one in enumerate(own)]
        unit = Unit(id=language, messages=tuple(said), user_id=USER)
        talk = transcript(unit)
        found = None if talk is None else await propose("memories", talk, unit, llm)
        texts = [] if found is None else [draft.content.casefold() for draft in found.drafts]
        wrong += [item["said"] for item in own if not _is_right(item, texts)]
    return SelfTest(model=llm.id, right=len(items) - len(wrong), items=len(items), wrong=tuple(wrong))


def _is_right(item: dict[str, Any], texts: list[str]) -> bool:
    about = [text for text in texts if any(word.casefold() in text for word in item["about"])]
    if not about:
        return not item.get("must", False)
    return all(any(word.casefold() in text for word in item["says"]) for text in about)
