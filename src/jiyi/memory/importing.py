"""The verb that takes in past chats."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from pydantic import JsonValue

from .. import validation
from ..errors import InvalidInput
from ..models import ImportReport, ReceiptState
from ..transfer.chats.chat import Chat
from ..transfer.chats.files import Source, UnknownShape, find_sources, read_chats
from .observing import Observing

AT_ONCE = 200  # messages in one `add`, which is one transaction

Progress = Callable[[int, int], None]


class Importing(Observing):
    async def import_chats(
        self,
        path: str | Path,
        *,
        user_id: str,
        agent_id: str | None = None,
        group_id: str | None = None,
        progress: Progress | None = None,
        actor: str = "import",
    ) -> ImportReport:
        """Take in past chats with their original times: exports of ChatGPT and Claude (also the zip as downloaded),
        OpenAI-style messages in JSON or JSONL, LoCoMo and LongMemEval; a file, or a folder of them.

        Everything is read and checked before anything is stored. What is known already is not stored twice, so it
        can be interrupted and started again.

            report = await memory.import_chats("conversations.json", user_id="mei")
        """
        validation.name("user_id", user_id)
        survey = await asyncio.to_thread(_survey, Path(path))
        before = await self.count(user_id=user_id, memory_types=["message"])
        done, waiting = 0, 0
        problems: Counter[str] = Counter()
        for source in survey.sources:
            chats = read_chats(source)
            while (chat := await asyncio.to_thread(next, chats, None)) is not None:
                for start in range(0, len(chat.messages), AT_ONCE):
                    part = chat.messages[start : start + AT_ONCE]
                    about = _about(chat)
                    # From the content, so that what was stored before an interruption is known before it is embedded.
                    scope = (chat.session_id, agent_id, group_id, actor)
                    key = sha256(repr((scope, about, part)).encode()).hexdigest()
                    receipt = await self.add(
                        part,
                        user_id=user_id,
                        session_id=chat.session_id,
                        agent_id=agent_id,
                        group_id=group_id,
                        metadata=about,
                        idempotency_key=key,
                        actor=actor,
                        wait=False,
                    )
                    waiting += receipt.state is ReceiptState.ACCEPTED
                    problems.update(receipt.problems)
                    done += len(part)
                    if progress is not None:
                        progress(done, survey.messages)
        after = await self.count(user_id=user_id, memory_types=["message"])
        notes = [f"{problem} ({times:,} times)" if times > 1 else problem for problem, times in problems.items()]
        if waiting:
            notes.append(f"{waiting:,} parts wait for the language model: `jiyi jobs list`, `jiyi worker`")
        return survey.report(new=after - before, notes=notes)


def _about(chat: Chat) -> dict[str, JsonValue]:
    about: dict[str, JsonValue] = {"imported_from": chat.source}
    return {**about, "title": chat.title} if chat.title else about


@dataclass(slots=True)
class _Survey:
    """What the files hold, found by reading all of them once."""

    sources: list[Source] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    messages: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    timeless: int = 0
    mended: int = 0
    passed_over: list[str] = field(default_factory=list)

    def take(self, chat: Chat) -> None:
        self.left_out.update(chat.left_out)
        if chat.messages:
            self.sessions.add(chat.session_id)
        self.messages += len(chat.messages)
        self.timeless += sum(message.sent_at is None for message in chat.messages)
        self.mended += chat.mended

    def report(self, *, new: int, notes: Sequence[str]) -> ImportReport:
        notes = [*self.passed_over, *notes]
        if self.timeless:
            notes.append(f"{self.timeless:,} messages carry no time: they count as said when they were imported")
        if self.mended:
            notes.append(f"{self.mended:,} messages had characters that cannot be stored: each is a \ufffd now")
        return ImportReport(
            files=len(self.sources),
            conversations=len(self.sessions),
            messages=self.messages,
            new=new,
            left_out=dict(self.left_out),
            notes=tuple(notes),
        )


def _survey(path: Path) -> _Survey:
    """Read everything, so that a mistake is found before anything is stored. Beside others, a file that is no chat is
    passed over: exports have a few of those."""
    found = _Survey()
    sources = find_sources(path)
    for source in sources:
        try:
            for chat in read_chats(source):
                found.take(chat)
        except UnknownShape as error:
            if len(sources) == 1:
                raise
            found.passed_over.append(f"passed over: {error.argument} {error.problem}")
            continue
        found.sources.append(source)
    if not found.sources:
        raise InvalidInput(str(path), "holds no chats of a known shape (docs/import.md)")
    return found
