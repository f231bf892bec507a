"""The first stage of `search`: a query and its filters, checked, in the form that the legs need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .. import validation
from ..errors import LlmError
from ..languages.keywords import query_keywords
from ..languages.normalise import normalise
from ..models import SearchMode
from ..scope import Filter
from .score import LEGS
from .turns import quoted, turns

if TYPE_CHECKING:
    from ..llm.keywords import Expander


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    query: str
    mode: SearchMode
    filter: Filter
    turns: tuple[str, ...]  # of a dialogue
    phrases: tuple[str, ...]
    keywords: tuple[str, ...]
    extra_keywords: tuple[str, ...]  # those given beside the query
    at_least: float
    limit: int
    explain: bool
    with_synonyms: bool
    other_words: tuple[tuple[str, tuple[str, ...]], ...] = ()  # that a language model named, by keyword


def interpret(
    query: str,
    where: Filter,
    *,
    mode: SearchMode,
    keywords: Sequence[str] | None,
    at_least: float,
    limit: int,
    explain: bool,
    with_synonyms: bool,
) -> Inquiry:
    validation.text("query", query, longest=validation.MAX_QUERY)
    validation.choice("search_mode", mode, tuple(LEGS))
    given = () if keywords is None else tuple(normalise(word) for word in validation.names("keywords", keywords))
    return Inquiry(
        query=query,
        mode=mode,
        filter=where,
        turns=tuple(turns(query)),
        phrases=tuple(quoted(query)),
        keywords=given or tuple(query_keywords(query)),
        extra_keywords=given,
        at_least=validation.share("min_relevance_score", at_least),
        limit=validation.whole("limit", limit),
        explain=explain,
        with_synonyms=with_synonyms,
    )


async def with_llm_synonyms(inquiry: Inquiry, expander: Expander | None) -> tuple[Inquiry, str | None]:
    """Add the synonyms that a language model suggests. Returns the problem if it fails; the search goes on."""
    if expander is None or not inquiry.with_synonyms:
        return inquiry, None
    try:
        found = await expander.expand(inquiry.query, user_id=inquiry.filter.user_id)
    except LlmError as error:
        return inquiry, f"searched without the language model's synonyms: {error}"
    return replace(inquiry, other_words=tuple(found.synonyms.items())), None
