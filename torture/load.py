"""Load of the soak: operations of several users in Chinese and English, checked against acknowledged ones."""

from __future__ import annotations

import random
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

from bench.texts import statements

from jiyi import JiyiError, Memory, NotFound
from jiyi.write.extract import BuiltinExtractor

from .trial import Trial

SHARES = {
    "search": 34,
    "context": 12,
    "get": 14,
    "list": 6,
    "statement": 10,
    "talk": 6,
    "update": 7,
    "delete": 9,
    "history": 2,
    "foreign": 2,
    "maintain": 0.1,
}
TALK = (
    ("I moved to {} last spring and work for {} now.", "Noted. How is {}?"),
    ("我上个月搬到了{}，现在在{}工作。", "好的，记住了。{}怎么样？"),
    ("My sister {} is allergic to {}; remind me tomorrow.", "I will remind you of {}."),
    ("我对{}过敏，下周三要和{}开会。", "好的，{}我会提醒你。"),
)


class Slowly(BuiltinExtractor):
    """The built-in extractor in place of a language model, so that conversations become jobs."""

    id = "soak"


@dataclass
class Load:
    """Written and not deleted memories, and durations since the last sample."""

    memory: Memory
    users: list[str]
    rng: random.Random
    trial: Trial
    questions: list[str]
    kept: dict[str, str] = field(default_factory=dict)  # acknowledged: user by id
    busy: set[str] = field(default_factory=set)  # ids in use by a task
    gone: list[tuple[str, str]] = field(default_factory=list)
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    made: int = 0

    async def one(self) -> None:
        verb = self.rng.choices(list(SHARES), list(SHARES.values()))[0]
        user = self.users[min(int(self.rng.expovariate(6 / len(self.users))), len(self.users) - 1)]
        began = perf_counter()
        try:
            await getattr(self, f"_{verb}")(user)
        except JiyiError as error:
            self.trial.breaks("other", f"{verb} of {user} failed: {error}")
        self.took[verb].append(perf_counter() - began)
        self.trial.counts["operations"] += 1
        self.trial.counts[verb] += 1

    async def _search(self, user: str) -> None:
        await self.memory.search(self.rng.choice(self.questions), user_id=user, limit=self.rng.randint(1, 20))

    async def _context(self, user: str) -> None:
        await self.memory.context(self.rng.choice(self.questions), user_id=user, max_tokens=600)

    async def _list(self, user: str) -> None:
        await self.memory.list(user_id=user, limit=100)

    async def _statement(self, user: str) -> None:
        self.made += 1
        [text] = statements(f"{self.trial.seed}:soak:{self.made}", 1)
        receipt = await self.memory.add(f"{text} #{self.made}", user_id=user)
        self.kept |= {made.id: user for made in receipt.memories}

    async def _talk(self, user: str) -> None:
        self.made += 1
        said, answer = self.rng.choice(TALK)
        words = [f"{self.rng.choice(('Oslo', 'Lena', '成都', '周敏', 'peanuts', '花生'))}{self.made}" for _ in range(3)]
        talk = [
            {"role": "user", "content": said.format(*words)},
            {"role": "assistant", "content": answer.format(*words)},
        ]
        receipt = await self.memory.add(talk, user_id=user, session_id=f"soak {self.made // 20}", wait=False)
        self.kept |= {made.id: user for made in receipt.memories}

    async def _get(self, user: str) -> None:
        chosen = self._chosen()
        if chosen is not None:
            try:
                await self.memory.get(chosen, user_id=self.kept[chosen])
            except NotFound:
                self.trial.breaks("lost", f"memory {chosen} of {self.kept[chosen]}")
            self.busy.discard(chosen)
        if self.gone:
            memory_id, owner = self.rng.choice(self.gone)
            with suppress(NotFound):
                await self.memory.get(memory_id, user_id=owner)
                self.trial.breaks("false success", f"memory {memory_id} of {owner} was deleted and still exists")

    async def _update(self, user: str) -> None:
        chosen = self._chosen()
        if chosen is not None:
            await self.memory.update(chosen, user_id=self.kept[chosen], importance=round(self.rng.random(), 3))
            self.busy.discard(chosen)

    async def _delete(self, user: str) -> None:
        chosen = self._chosen()
        if chosen is not None:
            owner = self.kept.pop(chosen)
            await self.memory.delete(chosen, user_id=owner)
            self.busy.discard(chosen)
            self.gone = [*self.gone[-500:], (chosen, owner)]

    async def _history(self, user: str) -> None:
        chosen = self._chosen()
        if chosen is not None:
            await self.memory.history(chosen, user_id=self.kept[chosen])
            self.busy.discard(chosen)

    async def _foreign(self, user: str) -> None:
        chosen = self._chosen()
        if chosen is not None:
            other = next(name for name in self.users if name != self.kept[chosen])
            with suppress(NotFound):
                await self.memory.get(chosen, user_id=other)
                self.trial.breaks("leak", f"memory {chosen} of {self.kept[chosen]} was shown to {other}")
            self.busy.discard(chosen)

    async def _maintain(self, user: str) -> None:
        done = await self.memory.maintenance.run(user_id=user)
        self.trial.counts["memories compressed"] += done.compressed

    def _chosen(self) -> str | None:
        """Choose a memory that no other task uses."""
        for _ in range(5):
            chosen = self.rng.choice(list(self.kept)[-400:]) if self.kept else None
            if chosen is not None and chosen not in self.busy:
                self.busy.add(chosen)
                return chosen
        return None
