"""All parsers of foreign input, each with valid seeds and the properties that must hold for any input.

A reader returns or raises one of Jiyi's errors (`CannotParse` for a file that is left alone). An `AssertionError` is a
broken property; any other exception is a bug.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from jiyi import InvalidInput, JiyiError
from jiyi.files.document import CannotParse, bullet_text, inserted, parse
from jiyi.files.format import Labels, Note, canonical, heading_line, read_labels, read_note
from jiyi.languages.dates import dates
from jiyi.languages.terms import keywords, tokens
from jiyi.languages.words import language, normalise
from jiyi.llm.json_reply import read_object
from jiyi.llm.keywords import read_expansion
from jiyi.models import CandidateMemory, Message
from jiyi.read.query import asks_assistant, interpret, people_named, without_names
from jiyi.scope import Filter
from jiyi.synonyms import parse_synonyms
from jiyi.text.fence import NOTICES, Fence, blank_context, harmless, is_context, one_line, quoted, strip_context
from jiyi.transfer.readers import find_reader
from jiyi.transfer.readers.markdown import read_note as read_markdown
from jiyi.transfer.records import Conversation, ImportedMemory
from jiyi.transfer.sources import find_sources
from jiyi.write.accept import accept
from jiyi.write.drafts import Said, Unit
from jiyi.write.extract import extract
from jiyi.write.llm.proposals import Proposals
from jiyi.write.llm.transcript import transcript

from . import seeds

OWN = (JiyiError, CannotParse)
AT = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
ID = "01k9zq4f3rw5m8v2c7t6n1d0ab"


@dataclass(frozen=True, slots=True)
class Reader:
    read: Callable[[str], None]
    seeds: tuple[str, ...]
    weight: int = 1  # relative share of the inputs


def _file(text: str) -> None:
    """Parsing a memory file is lossless; inserting a line changes no other."""
    document = parse(text)
    assert document.text == text, "parsing is not the identity"
    for entry in document.entries:
        read_note(entry.item, entry.memory_type)
        read_labels(entry.item)
    content = canonical(text[:200])
    if not content.strip() or "\x00" in content or not _encodes(content):
        return
    note = Note(content=content, memory_type="fact")
    line = bullet_text("- ", ID, note, Labels(session_id=text[:20] or None), document.eol)
    after = parse(inserted(document, [line], "fact", heading_line("fact", "en")).text)
    new = [entry for entry in after.entries if entry.memory_id == ID]
    known = sum(entry.memory_id == ID for entry in document.entries)
    assert len(new) == known + 1, "a new line is not found again"
    assert any(read_note(entry.item, entry.memory_type).content == content for entry in new), (
        "a new line reads otherwise"
    )
    assert len(after.entries) == len(document.entries) + 1, "a new line changes what others are"


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="jiyi-inputs-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))


def _written(text: str, name: str) -> Path:
    path = _folder() / name
    path.write_bytes(text.encode("latin-1") if _is_bytes(text) else text.encode("utf-8", "surrogatepass"))
    return path


def _is_bytes(text: str) -> bool:
    return text.startswith(("\x1f\x8b", "PK")) and all(ord(each) < 256 for each in text)


def _chats(text: str) -> None:
    _import(text, "chats.json")


def _memories(text: str) -> None:
    _import(text, "memories.json")


def _import(text: str, name: str) -> None:
    for source in find_sources(_written(text, name)):
        for record in find_reader(source).read(source):
            if isinstance(record, Conversation):
                for message in record.messages:
                    accept(message)
            elif isinstance(record, ImportedMemory):
                accept(record.memory)


def _notes(text: str) -> None:
    for imported in read_markdown(text, "a/b.md", "b.md"):
        _accepted(imported.memory)


def _accepted(memory: CandidateMemory | Message) -> None:
    try:
        accept(memory)
    except InvalidInput:
        return


def _export(text: str) -> None:
    _import(text, "export.jsonl")


def _reply(text: str) -> None:
    """Values read from a reply are in it, and are read again unchanged."""
    for key in ("memories", "synonyms"):
        try:
            found = read_object(text, key)
        except JiyiError:
            continue
        again = read_object(json.dumps(found.value, ensure_ascii=False), key)
        assert again.value == found.value and not again.cut_off and not again.damaged, (
            "what was read does not read again"
        )
        if key == "synonyms":
            read_expansion(found.value, "where does Mei live? 小美住在哪里？")
        else:
            _proposed(found.value["memories"])


TALK = Unit(
    id="u1",
    user_id="mei",
    messages=tuple(
        Said(id=f"m{at}", role=role, speaker=who, text=said, sent_at=AT + timedelta(minutes=at))
        for at, (role, who, said) in enumerate(
            (
                ("user", "Mei", "I moved to Berlin last week and I work as a nurse at Charité."),
                ("assistant", None, "Berlin is lovely!"),
                ("user", "Mei", "我对花生过敏，每周跑步两次。"),
            ),
            1,
        )
    ),
)


def _proposed(proposals: Any) -> None:
    talk = transcript(TALK)
    assert talk is not None
    drafts, _ = Proposals(talk, {"extractor": "llm"}).memories(proposals)
    texts = {said.id: said.text for said in TALK.messages}
    for draft in drafts:
        assert draft.evidence, "a memory without evidence"
        assert all(one.message_id in texts for one in draft.evidence), "evidence that is not there"


def _query(text: str) -> None:
    interpret(
        text,
        Filter.parse(user_id="mei"),
        mode="hybrid",
        keywords=None,
        min_score=0,
        limit=5,
        explain=False,
        with_synonyms=True,
    )
    for span in dates(text, AT):
        assert text[span.at[0] : span.at[1]] == span.text and span.start < span.end, "a time that does not stand there"
    named = people_named(text, frozenset({"mei", "小明", text[:10].lower() or "x"}))
    without_names(text, named)
    asks_assistant(text)


def _filters(text: str) -> None:
    """Arguments of `list` and `search` of any kind."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = {"user_id": text, "tags": [text], "memory_types": text, "session_id": text[:300]}
    if isinstance(given, dict):
        known = {"user_id", "session_id", "agent_id", "group_id", "memory_types", "layers", "tags", "time_range"}
        known |= {"time_range_days", "as_of", "asked_at", "status"}
        where = Filter.parse(**{"user_id": "mei", **{name: value for name, value in given.items() if name in known}})
        assert where.user_id == given.get("user_id", "mei"), "another user"


def _words(text: str) -> None:
    """Pure functions that accept any text."""
    normal = normalise(text)
    assert normalise(normal) == normal, "normal form is not stable"
    for token in tokens(text):
        assert token.strip(), "an empty token"
    keywords(text)
    language(text)


def _statement(text: str) -> None:
    accepted = accept(text)
    assert accepted.candidates, "neither kept nor refused"
    said = Said(id="m", role="user", speaker=None, text=text, sent_at=AT)
    for draft in extract(Unit(id="u", messages=(said,), user_id="mei", group_id=None)):
        for one in draft.evidence:
            assert 0 <= (one.start or 0) <= (len(text) if one.end is None else one.end) <= len(text), "evidence outside"


FENCE = Fence(b"a secret of the trial")


def _fence(text: str) -> None:
    """Recalled text cannot end its fence, and a block is recognised and removed completely."""
    line = quoted(text)
    assert len(line.splitlines()) == 1 and len(harmless(text).splitlines()) <= 1, "more than one line"
    assert json.loads(line) == one_line(text), "not the text"
    assert "<" not in line and "<" not in harmless(text), "a tag inside"
    block = FENCE.block((NOTICES["en"], "# USER MEMORY", f"- {line}"))
    assert block.count(block[block.rindex("\n") :]) == 1, "closed twice"
    assert is_context(block) and strip_context(f"a{block}\nb") == "a\nb", "a block is not taken out whole"
    assert len(blank_context(text)) == len(text), "blanking changes the length"
    assert is_context(text) or strip_context(text) == text, "something was taken out that is no block"


def _synonyms(text: str) -> None:
    for one, other, similarity in parse_synonyms(text):
        assert 0 < similarity <= 1 and one != other, "no pair"


READERS: dict[str, Reader] = {
    "memory.md": Reader(_file, seeds.FILES, weight=3),
    "chats": Reader(_chats, seeds.CHATS, weight=3),
    "memories of others": Reader(_memories, seeds.MEMORIES, weight=2),
    "a graph": Reader(_memories, seeds.GRAPHS),
    "notes": Reader(_notes, seeds.NOTES, weight=2),
    "an export": Reader(_export, seeds.EXPORTS, weight=2),
    "a model's reply": Reader(_reply, seeds.REPLIES, weight=4),
    "a query": Reader(_query, seeds.QUERIES, weight=3),
    "filters": Reader(_filters, seeds.FILTERS),
    "words": Reader(_words, seeds.QUERIES + seeds.STATEMENTS),
    "a statement": Reader(_statement, seeds.STATEMENTS, weight=2),
    "a prompt": Reader(_fence, seeds.PROMPTS, weight=2),
    "synonyms": Reader(_synonyms, seeds.SYNONYMS),
}
