"""Presets of ranking weights: the default `measured`, fitted on public benchmarks, and common formulas."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from ..settings import Preset, SearchSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weight of each part of a candidate's sum; negative ones lower it."""

    keyword: float = 0.0
    text: float = 0.0  # BM25
    semantic: float = 0.0  # cosine, in `measured` together with the messages before and after
    dialogue_text: float = 0.0  # for dialogues: all turns
    dialogue_semantic: float = 0.0  # … the nearest turn
    last_text: float = 0.0  # … the last turn
    last_semantic: float = 0.0
    whole_semantic: float = 0.0  # … all turns as one text
    episode: float = 0.0  # BM25 of the conversation that a message belongs to
    before: float = 0.0  # BM25 of the message before
    gist: float = 0.0  # cosine of the memories derived from it
    held: float = 0.0  # holds most of the query's words, weighted by rarity
    phrase: float = 0.0  # holds the words of a quoted phrase
    speaker: float = 0.0  # said by a person named in the query
    time: float = 0.0  # happened at a time named in the query
    assistant: float = 0.0  # said by the assistant, unless the query asks for that
    asks: float = 0.0  # is a question
    over: float = 0.0  # states something that is no longer true
    succeeds: float = 0.0  # supersedes such a statement
    derived: float = 0.0  # derived from messages that are candidates too
    recency: float = 0.0
    importance: float = 0.0
    uses: float = 0.0  # recalled often and recently
    priority: float = 0.0  # of its type
    half_life_days: float = 30.0

    def but(self, settings: SearchSettings, preset: Preset) -> Self:
        """Replace the weights that the settings name."""
        given = {
            "keyword": settings.keyword_weight,
            "text": settings.text_weight,
            "semantic": settings.semantic_weight,
            "recency": settings.recency_weight,
            "importance": settings.importance_weight,
            "half_life_days": settings.half_life_days,
        }
        chosen = replace(self, **{name: value for name, value in given.items() if value is not None})
        if preset != "words_and_time":
            return chosen
        share = 1 - chosen.uses - chosen.priority  # what keywords, text and recency make up together
        scaled = {name: given[name] for name in ("keyword", "text", "recency")}
        return replace(chosen, **{name: share * value for name, value in scaled.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Settings for scoring."""

    preset: Preset
    weights: Weights
    priorities: Mapping[str, float]
    half_lives: Mapping[str, float] = field(default_factory=dict)  # by memory type, where it has its own


# Priority of memory types for `words_and_time`; other types have 0.
TYPE_PRIORITIES = {"preference": 1.0, "profile": 1.0, "fact": 0.5, "skill": 0.5, "command_output": 0.5}

PRESETS: dict[Preset, Weights] = {
    "measured": Weights(
        keyword=0.10,
        text=0.38,
        semantic=0.67,
        dialogue_text=0.27,
        dialogue_semantic=0.53,
        last_text=0.13,
        last_semantic=0.25,
        whole_semantic=0.26,
        episode=0.54,
        before=0.14,
        gist=0.18,
        held=0.50,
        phrase=0.40,
        speaker=0.44,
        time=0.30,
        assistant=-0.50,
        asks=-0.30,
        over=-0.60,
        succeeds=0.05,
        derived=-0.60,
        recency=0.02,
        importance=0.05,
    ),
    # 0.6 meaning + 0.4 keywords; a memory that only one of them finds keeps 0.7 of its score
    "two_legs": Weights(semantic=0.6, keyword=0.4),
    # (0.4 keywords + 0.4 text + 0.2 recency) × 0.7 + 0.2 interaction + 0.1 type
    "words_and_time": Weights(keyword=0.28, text=0.28, recency=0.14, uses=0.2, priority=0.1),
    # 0.6 meaning + 0.2 e^(-days since it was recalled / 30) + 0.2 importance
    "meaning_and_time": Weights(semantic=0.6, recency=0.2, importance=0.2, half_life_days=30 * 0.6931471805599453),
}
