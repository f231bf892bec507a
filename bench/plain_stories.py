"""Stories of plain statements, made from templates, in the shape of everyday-train: training data for models.

    python -m bench.plain_stories --out FILE.json.gz [--count 400] [--seed 0]

Each person states some attributes of their own and of relatives, with chatter in between. The questions are about
these, about others that were not stated, and about the same attributes of relatives who were not mentioned: the same
words about somebody else are the hardest to tell apart.
"""

from __future__ import annotations

import argparse
import random
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .reader.held_out import write_json

TEMPLATES = Path(__file__).parent / "data" / "plain-templates.toml"
LANGUAGES = ("en", "zh")
BEGAN = datetime(2025, 2, 3, 9, tzinfo=UTC)
DAYS_BETWEEN = 3  # sessions
OWN = (6, 11)  # attributes of the person
OTHERS = (3, 7)  # statements about relatives
ABSENT = 5  # questions that nothing answers
CHANGED = 0.4  # share of single-valued attributes that change
ACROSS = 0.25  # share of questions in the other language
FOREIGN = 0.12  # share of statements in the other language
USERS = ("user", "user", "user", "Sam", "Nina", "阿杰", "李雷")
WRAPPED = 0.25  # share of statements between other sentences


@dataclass
class Statement:
    attribute: str
    relative: int | None  # None: the person
    text: str
    value: tuple[str, str]
    kind: str = "fact"
    before: tuple[str, str] | None = None  # the value that it replaces
    at: list[int] = field(default_factory=list)  # session and message


class Writer:
    """Writes one story."""

    def __init__(self, templates: dict[str, Any], name: str, seed: int) -> None:
        self._chance = random.Random(seed)
        self._relatives = templates["relatives"]
        self._has_relative = templates["has_relative"]
        self._chatter = templates["chatter"]
        self._around = templates["around"]
        self._attributes = {
            key: value for key, value in templates.items() if isinstance(value, dict) and "values" in value
        }
        self._language = self._chance.choice(LANGUAGES)
        self._name = name

    def story(self) -> dict[str, Any]:
        said = self._statements()
        sessions = []
        for number, statement in enumerate(said):
            statement.at = [number, 0]
            about = "self" if statement.relative is None else self._relatives[statement.relative][0]
            text = sometimes_wrapped(statement.text, self._around, self._chance)
            messages = [{"role": "user", "text": text, "kind": statement.kind, "about": about}]
            if self._chance.random() < 0.3:
                chatter = self._chance.choice(self._chatter)
                place = self._chance.randrange(2)
                messages.insert(place, {"role": "user", "text": chatter, "kind": "smalltalk", "about": "none"})
                statement.at = [number, 1 - place]
            sessions.append({"at": day(number), "messages": messages})
        return {
            "id": self._name,
            "language": self._language,
            "user": self._chance.choice(USERS),
            "asked_at": day(len(said), later=5),
            "sessions": sessions,
            "questions": [*self._about(said), *self._absent(said), *self._about_relatives(said)],
            "junk": self._chatter,
        }

    def _statements(self) -> list[Statement]:
        chance = self._chance
        own = chance.sample(sorted(self._attributes), chance.randint(*OWN))
        said = [self._state(name, None, "me") for name in own]
        told = [name for name in self._attributes if "they" in self._attributes[name]]
        pairs = [(chance.choice(told), chance.randrange(len(self._relatives))) for _ in range(chance.randint(*OTHERS))]
        said += [self._state(name, relative, "they") for name, relative in dict.fromkeys(pairs)]
        chance.shuffle(said)
        changes = [one for one in said if one.relative is None and "change" in self._attributes[one.attribute]]
        for old in changes:
            if chance.random() < CHANGED:
                new = self._state(old.attribute, None, "change", but=old.value)
                new.before, new.kind = old.value, "change"
                said.append(new)
        return said

    def _state(self, name: str, relative: int | None, form: str, but: tuple[str, str] | None = None) -> Statement:
        values = [tuple(value) for value in self._attributes[name]["values"] if tuple(value) != but]
        value = self._chance.choice(values)
        language = self._written(FOREIGN)
        text = self._chance.choice(self._attributes[name][form][LANGUAGES[language]])
        if relative is not None:
            text = text.replace("{r}", self._relatives[relative][language])
        return Statement(name, relative, text.replace("{v}", value[language]), value)

    def _written(self, other: float) -> int:
        own = LANGUAGES.index(self._language)
        return 1 - own if self._chance.random() < other else own

    def _ask(self, name: str, relative: int | None) -> str:
        language = self._written(ACROSS)
        form = "ask" if relative is None else "ask_they"
        text: str = self._chance.choice(self._attributes[name][form][LANGUAGES[language]])
        return text if relative is None else text.replace("{r}", self._relatives[relative][language])

    def _about(self, said: list[Statement]) -> list[dict[str, Any]]:
        latest = {(one.attribute, one.relative): one for one in said}
        return [
            {
                "q": self._ask(*asked),
                "gold": [one.at],
                "must": [[re.escape(value)] for value in dict.fromkeys(one.value)],
                "never": [re.escape(value) for value in dict.fromkeys(one.before or ())],
                "kind": "plain" if one.before is None else "changed",
            }
            for asked, one in latest.items()
        ]

    def _about_relatives(self, said: list[Statement]) -> list[dict[str, Any]]:
        """Ask whether there is a relative, of one who was mentioned and of one who was not."""
        mentioned = sorted({one.relative for one in said if one.relative is not None})
        others = [one for one in range(len(self._relatives)) if one not in mentioned]
        asked = self._chance.sample(mentioned, min(1, len(mentioned))) + self._chance.sample(others, 1)
        return [self._ask_for(relative, [one.at for one in said if one.relative == relative]) for relative in asked]

    def _ask_for(self, relative: int, gold: list[list[int]]) -> dict[str, Any]:
        language = self._written(ACROSS)
        text = self._chance.choice(self._has_relative[LANGUAGES[language]])
        words = [[rf"\b{word}\b" if word.isascii() else word] for word in self._relatives[relative]] if gold else []
        kind = "plain" if gold else "absent"
        return {
            "q": re.sub(r"\ba (?=[aeiou])", "an ", text.replace("{r}", self._relatives[relative][language])),
            "gold": gold,
            "must": words,
            "never": [],
            "kind": kind,
        }

    def _absent(self, said: list[Statement]) -> list[dict[str, Any]]:
        """Ask about attributes of somebody else first, then about attributes that nobody has stated."""
        chance = self._chance
        stated = {(one.attribute, one.relative) for one in said}
        known = sorted({name for name, _ in stated if "they" in self._attributes[name]})
        people = [None, *range(len(self._relatives))]
        asked = [(chance.choice(known), chance.choice(people)) for _ in range(2 * ABSENT)] if known else []
        asked += [(name, None) for name in chance.sample(sorted(self._attributes), ABSENT)]
        missing = [one for one in dict.fromkeys(asked) if one not in stated]
        return [
            {"q": self._ask(*one), "gold": [], "must": [], "never": [], "kind": "absent"} for one in missing[:ABSENT]
        ]


def sometimes_wrapped(text: str, around: dict[str, Any], chance: random.Random) -> str:
    """Put a sentence before or after some of the statements, or both."""
    if chance.random() >= WRAPPED:
        return text
    language = "en" if text.isascii() else "zh"
    before, after = (chance.choice(around[part][language]) for part in ("before", "after"))
    space = " " if language == "en" else ""
    return space.join(chance.choice(((before, text), (text, after), (before, text, after))))


def day(session: int, later: int = 0) -> str:
    """Return the time of a session, or some days later."""
    return (BEGAN + timedelta(days=DAYS_BETWEEN * session + later)).isoformat()


def stories(count: int = 400, seed: int = 0) -> list[dict[str, Any]]:
    templates = tomllib.loads(TEMPLATES.read_text("utf-8"))
    return [Writer(templates, f"plain-{number}", 1000 * seed + number).story() for number in range(count)]


def write(module: str, description: str, make: Callable[[int, int], list[dict[str, Any]]], count: int) -> None:
    """Parse the command line of a module that makes stories, and write them."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{module}", description=description.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    made = make(options.count, options.seed)
    write_json(options.out, {"stories": made})
    print(f"{len(made)} stories, {sum(len(story['questions']) for story in made)} questions")


if __name__ == "__main__":
    write("plain_stories", __doc__, stories, 400)
