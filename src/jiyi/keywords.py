"""Keyword extraction and expansion as a public API.

    from jiyi.keywords import KeywordExtractor

    await KeywordExtractor().extract_keywords("我对花生过敏", memory_type="preference")

A language model is optional: its replies are checked, and the rules apply if it fails.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from . import validation
from .engine import runtime
from .errors import InvalidInput, LlmBadReply
from .languages.terms import TYPE_WEIGHT, type_words
from .languages.terms import keywords as keywords_by_rule
from .languages.words import normalise, prompt_language
from .llm import LLMRequest
from .llm.json_reply import read_object
from .llm.keywords import EXPANSION, KEYWORDS, WordsOf, usable_words, weighted_words
from .llm.prompts import Prompts
from .memory import Memory
from .read.query import MOST_RELATED, MOST_SYNONYMS, Expansion, expand

Llm = Callable[[str], Awaitable[str]]

TAG_WEIGHT = 1.0
LIGHTEST = 0.3
MOST_KEYWORDS = 50
LONGEST_REPLY = 20_000
LONGEST_IN_PROMPT = 8_000

logger = logging.getLogger(__name__)


class KeywordExtractor:
    """Finds the keywords of a memory, and synonyms and related words for them. With a `memory` and a `user_id`,
    expansion uses the user's synonyms and the words that occur together in the user's memories, and the language model
    of the memory's settings is asked. `llm`, an async function from a prompt to a reply, replaces that model."""

    def __init__(
        self,
        memory: Memory | None = None,
        user_id: str | None = None,
        *,
        llm: Llm | None = None,
        min_weight: float = LIGHTEST,
    ) -> None:
        if (memory is None) != (user_id is None):
            raise InvalidInput("user_id", "memory and user_id belong together: pass both or none")
        self._memory = memory
        self._user_id = None if user_id is None else validation.name("user_id", user_id)
        self._llm = llm
        self._model = runtime(memory).llm if memory is not None and llm is None else None
        self._prompts = Prompts(None, "production") if self._model is None else self._model.prompts
        self._min_weight = validation.share("min_weight", min_weight)

    async def extract_keywords(
        self,
        content: str,
        summary: str = "",
        memory_type: str | None = None,
        max_keywords: int = 5,
        tags: Sequence[str] = (),
    ) -> list[tuple[str, float]]:
        """Return the keywords of a memory with weights in (0, 1], heaviest first.

        Tags are all kept, at weight 1; the other words fill up to `max_keywords`.

            await KeywordExtractor().extract_keywords("I am allergic to peanuts", tags=["health"])
        """
        validation.text("content", content)
        if summary:
            validation.text("summary", summary)
        most = validation.whole("max_keywords", max_keywords, highest=MOST_KEYWORDS)
        kind = "" if memory_type is None else validation.memory_type("memory_type", memory_type)
        by_user = [normalise(tag) for tag in validation.tags("tags", tags)]
        of_type = type_words(kind, content)
        # A summary that is the beginning of the content would only count its words twice.
        text = content if content.startswith(summary.removesuffix("…")) else f"{summary}\n{content}"
        found = await self._by_llm(text, content, summary, kind, most, {*by_user, *of_type})
        found = found or [
            (word, weight)
            for at, (word, weight) in enumerate(keywords_by_rule(text, limit=most))
            if at == 0 or weight >= self._min_weight
        ]
        weights = dict.fromkeys(by_user, TAG_WEIGHT)
        for word, weight in (*found, *((word, TYPE_WEIGHT) for word in of_type)):
            weights.setdefault(word, weight)
        ordered = sorted(weights.items(), key=lambda entry: (entry[0] not in by_user, -entry[1]))
        return ordered[: max(most, len(by_user))]

    async def expand_keywords(
        self, keywords: Sequence[str], include_synonyms: bool = True, include_semantic: bool = True
    ) -> dict[str, list[str]]:
        """Return other words for the keywords: `{"original": […], "synonyms": […], "related": […]}`. Synonyms are the
        user's own, the shared and the built-in ones; related words often occur in the same memories of this user, so
        without a `memory` there are none."""
        words = validation.names("keywords", keywords)
        if self._memory is None or self._user_id is None:
            found = expand(words, {})
        else:
            found = await self._memory.synonyms.expand(words, user_id=self._user_id)
        synonyms, related = found.synonyms, found.related
        if words and (include_synonyms or include_semantic):
            more, concepts = await self._expansion_by_llm(found)
            synonyms, related = (*synonyms, *more), (*related, *concepts)
        return {
            "original": list(found.original),
            "synonyms": list(dict.fromkeys(synonyms)) if include_synonyms else [],
            "related": list(dict.fromkeys(related))[:MOST_RELATED] if include_semantic else [],
        }

    async def _by_llm(
        self, text: str, content: str, summary: str, memory_type: str, most: int, allowed: set[str]
    ) -> list[tuple[str, float]]:
        if self._llm is None and self._model is None:
            return []
        reply = await self._ask(
            "keywords",
            text,
            KEYWORDS,
            max_keywords=str(most),
            summary=summary[:LONGEST_IN_PROMPT],
            content=content[:LONGEST_IN_PROMPT],
            memory_type=memory_type or "general",
        )
        there = WordsOf(text)
        found = {
            word: weight
            for word, weight in weighted_words(reply.get("keywords"))
            if word in allowed or there.contain(word)
        }
        if not found:
            logger.warning("the language model gave no usable keywords: using those by rule")
        return sorted(found.items(), key=lambda entry: -entry[1])[:most]

    async def _expansion_by_llm(self, known: Expansion) -> tuple[list[str], list[str]]:
        query = " ".join(known.original)
        reply = await self._ask("expand", query, EXPANSION, query=query)
        taken = {*known.original, *known.synonyms}
        given = reply.get("synonyms")
        groups = [
            list(usable_words(group)) for group in (given if isinstance(given, list) else [])[: len(known.original)]
        ]
        synonyms = [word for group in groups for word in group if word not in taken]
        taken.update(synonyms)
        related = [word for word in usable_words(reply.get("related_concepts")) if word not in taken]
        return synonyms[: MOST_SYNONYMS * len(known.original)], related[:MOST_RELATED]

    async def _ask(self, task: str, text: str, schema: dict[str, Any], **values: str) -> dict[str, Any]:
        """Ask the model; return {} if it fails, so that the rules apply."""
        if self._llm is None and self._model is None:
            return {}
        prompt = self._prompts.get(task, prompt_language(text))
        request = prompt.request(schema, **values)
        try:
            said = await self._say(request)
            if not isinstance(said, str) or len(said) > LONGEST_REPLY:
                raise LlmBadReply(f"the reply is no text of up to {LONGEST_REPLY:,} characters")
            return read_object(said, schema["required"][0]).value
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything
            logger.warning("the language model could not be asked for keywords: %s", error)
            return {}

    async def _say(self, request: LLMRequest) -> object:
        if self._llm is not None:
            return await self._llm(f"{request.system}\n\n{request.user}")
        if self._model is not None and self._user_id is not None:
            return (await self._model.ask(request, user_id=self._user_id)).text
        return ""
