"""Rules as rows of a table, and how a row is found for a clause.

The tables are text files in `tables/`, one for each memory type and language, so that they can be read and extended
without reading code. `docs/extraction.md` describes their format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from .clause import PERSONS, Claim, Clause
from .lexicon import read_table, words
from .names import property_name
from .values import plain_value

LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What the rows of one section say: its heading."""

    attribute: str  # the same in both languages; {value}, {kind} and {noun} are filled in
    memory_type: str = "fact"
    importance: float = 0.5
    weight: float = 0.6
    single: bool = False
    ended: bool = False
    says: str = ""  # the value, where the words name a thing and not the value: likes:coffee is "likes"
    # What "not" does: "no" makes the value "no …", "end" says it holds no longer, "drop" makes it no claim; anything
    # else is the value itself.
    negated: str = "no"
    about: frozenset[str] = PERSONS
    chain: str = ""  # only after this verb: can
    nouns: frozenset[str] = frozenset()  # the section is about "my …": the last word of what is the speaker's


@dataclass(frozen=True, slots=True)
class Row:
    """A pattern for what comes after the verb; or, with a cue, for the whole clause."""

    meaning: Meaning
    pattern: re.Pattern[str] | None
    cue: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one memory type in one language."""

    by_verb: dict[str, list[Row]]
    phrases: tuple[Row, ...]


@cache
def table(name: str, language: str) -> Table:
    by_verb: dict[str, list[Row]] = {}
    phrases: list[Row] = []
    lists: dict[str, str] = {}
    meaning = Meaning(attribute=name)
    for line in _lines(read_table(f"{name}.{language}.txt")):
        if line.startswith("[") and "]" in line and "::" not in line:
            meaning = _heading(line)
        elif found := _DEFINITION.match(line):
            words = found[3] if found[2] else "(?:" + "|".join(found[3].split()).replace("_", " ") + ")"
            lists["{" + found[1] + "}"] = _filled(words, lists)
        else:
            words, _, pattern = line.partition("::")
            pattern = _filled(pattern, lists)
            compiled = re.compile(pattern.strip(), re.IGNORECASE) if pattern.strip() else None
            if words.startswith("?"):
                phrases.append(Row(meaning, compiled, words[1:].strip()))
            else:
                for verb in words.split():
                    # A dash stands for no verb: 我30岁.
                    by_verb.setdefault("" if verb == "-" else verb, []).append(Row(meaning, compiled))
    return Table(by_verb, tuple(phrases))


# {animal} = dog cat guinea_pig: words. {place} := [A-Z].*: a pattern.
_DEFINITION = re.compile(r"\{(\w+)\} (:?)= (.*)", re.DOTALL)


def _filled(pattern: str, lists: dict[str, str]) -> str:
    for name, value in lists.items():
        pattern = pattern.replace(name, value)
    return pattern


def _lines(text: str) -> Iterator[str]:
    """The rows; one that begins with a space goes on with the row before."""
    row = ""
    for line in text.splitlines():
        if line.startswith(("  ", "\t")) and row:
            row += ("" if "::" in row or ":= " in row or row.endswith(",") else " ") + line.strip()
            continue
        if row:
            yield row
        row = "" if line.startswith("#") else line.strip()
    if row:
        yield row


def _heading(line: str) -> Meaning:
    """[home] single importance=0.75 not=end"""
    attribute, _, options = line[1:].partition("]")
    meaning = Meaning(attribute=attribute)
    for option in options.split():
        key, _, value = option.partition("=")
        value = value.replace("_", " ")
        if key == "type":
            meaning = replace(meaning, memory_type=value)
        elif key in ("importance", "weight"):
            meaning = replace(meaning, **{key: float(value)})  # type: ignore[arg-type]
        elif key in ("about", "nouns"):
            meaning = replace(meaning, **{key: frozenset(value.split(","))})  # type: ignore[arg-type]
        elif key == "not":
            meaning = replace(meaning, negated=value)
        elif key in ("says", "chain"):
            meaning = replace(meaning, **{key: value})  # type: ignore[arg-type]
        else:
            meaning = replace(meaning, **{key: True})  # type: ignore[arg-type]
    return meaning


_HAS_ONE = frozenset(("有个", "有一个", "有位", "有一位"))


def claim_by_table(name: str, clause: Clause) -> Claim | None:
    """What the rows that fit say: the surer of the surest phrase and the first row of the verb."""
    rows = table(name, clause.language)
    phrase = _by_phrase(rows.phrases, clause)
    row = _by_verb(rows.by_verb.get(clause.verb, []), clause)
    if row is None and clause.verb in _HAS_ONE:
        # 有个女儿 is said like 有女儿, 有两个女儿.
        plain = replace(clause, verb="有", rest=clause.verb[1:] + clause.rest)
        row = _by_verb(rows.by_verb.get("有", []), plain)
    if phrase and row:
        return phrase if phrase.weight >= row.weight else row
    return phrase or row


def _by_phrase(rows: tuple[Row, ...], clause: Clause) -> Claim | None:
    if clause.language == "zh" and clause.about == "other" and "我" not in clause.text:
        # 你上次说你对海鲜过敏: of whom it is said matters, whatever the words.
        return None
    lower = clause.text.lower()
    claims = [
        claim
        for row in rows
        if row.cue in lower and row.pattern and (found := row.pattern.search(clause.text))
        if (claim := _claim(row.meaning, clause, found))
    ]
    return max(claims, key=lambda claim: claim.weight, default=None)


def _by_verb(rows: list[Row], clause: Clause) -> Claim | None:
    for row in rows:
        meaning = row.meaning
        if clause.about not in meaning.about or not _noun_fits(meaning, clause):
            continue
        if (meaning.chain and meaning.chain not in clause.chain) or (clause.drops and meaning.negated == "drop"):
            continue
        matched = row.pattern.match(clause.rest) if row.pattern else None
        if matched or not row.pattern:
            return _claim(meaning, clause, matched)
    return None


def _noun_fits(meaning: Meaning, clause: Clause) -> bool:
    if not meaning.nouns:
        return True
    if clause.about != "kin":
        return False
    last = clause.noun.split()[-1] if clause.language == "en" and clause.noun else clause.noun
    return last in meaning.nouns or any(clause.noun.startswith(noun) for noun in meaning.nouns if noun.endswith("…"))


def _claim(meaning: Meaning, clause: Clause, matched: re.Match[str] | None) -> Claim | None:
    groups = matched.groupdict() if matched else {}
    thing = plain_value(groups["value"] or "" if "value" in groups else clause.rest, clause.language)
    if not thing and ("{value}" in meaning.attribute or (groups.get("value") and not meaning.says)):
        # 以前喜欢: what, is not said.
        return None
    kind = plain_value(groups.get("kind") or "", clause.language).lower()
    value = meaning.says or thing
    ended = clause.ended or meaning.ended or (clause.negated and meaning.negated == "end") or _was(meaning, clause)
    if clause.negated and not ended:
        value = f"no {value}" if meaning.negated == "no" else meaning.negated
    old = groups.get("old")
    return Claim(
        memory_type=meaning.memory_type,
        attribute=meaning.attribute.format(
            value=thing.lower(), kind=property_name(kind), noun=property_name(clause.noun)
        ),
        value=value,
        # That something is over is worth more than what was done once.
        weight=meaning.weight + (0.05 if ended else 0.28 if _never_takes(meaning, clause) else 0.0),
        importance=meaning.importance,
        single=meaning.single and not ended,
        ended=ended,
        replaces=plain_value(old, clause.language) if old else None,
    )


def _never_takes(meaning: Meaning, clause: Clause) -> bool:
    """我不喝咖啡: what somebody does not eat or drink says more of them than what they do."""
    return meaning.negated == "avoids" and clause.negated and not (clause.times or clause.perfect)


# "I worked at a bank", 以前住在巴黎: a state that is told as past is over. "I moved to Paris" is none.
_FOR_GOOD = frozenset(("birthday", "hometown", "name", "education"))


def _was(meaning: Meaning, clause: Clause) -> bool:
    if not clause.past or clause.perfect or meaning.attribute in _FOR_GOOD:
        return False
    if clause.chain and clause.chain[-1] in ("start", "begin"):
        # "I started smoking again"
        return False
    return clause.language == "zh" or clause.verb in words("en", "states")
