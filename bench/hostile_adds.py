"""CPU times of adding hostile messages, and how they grow with the length of the text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import process_time

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.text_cache import clear_text_caches
from jiyi.validation import MAX_TEXT

from .texts import statements

GROWTH = 1.3  # bound: time for a text of twice the length, compared with twice the time
LONGEST_S = 2.0  # bound: CPU time of the longest message that is taken
REPEATS = 3
LENGTHS = (MAX_TEXT // 2, MAX_TEXT)

# Each is repeated up to the length.
HOSTILE: dict[str, str] = {
    "one endless sentence": "my sister said that I moved to Rome and that we sold the car because ",
    "one endless sentence in Chinese": "我姐姐说我搬到上海了所以我们把车卖了而且",
    "ten thousand short sentences": "I eat. ",
    "short sentences in Chinese": "我吃素。",
    "lines": "a\n",
    "one word": "a",
    "one word in Chinese": "记",
    "digits": "1234567890",
    "numbers and dates": "2023-05-07 1,000.50 12:30 ",
    "times": "last May at 3pm, yesterday, 上周五, ",
    "punctuation": ",;:!?-",
    "brackets": "([{（「『",
    "closed brackets": "((((a))))",
    "quotation marks": "\"“'",
    "spaces": " " * 50 + "x",
    "dots": "." * 50 + "x",
    "line ends": "\n" * 50 + "x",
    "combining marks": "z" + "\u0301" * 30,
    "emoji": "🧠👩‍🔬🏳️‍🌈🇨🇳",
    "quoted lines": "> I live in Rome\n",
    "code": "```\nx = [i for i in range(10)]\n```\n",
    "addresses": "https://example.com/a/b?c=d&e=f ",
}


@dataclass(frozen=True, slots=True)
class HostileAdds:
    """Least CPU times in seconds, of the shorter and the longer text of each kind."""

    times: dict[str, tuple[float, float]]

    def growth(self, name: str) -> float:
        shorter, longer = self.times[name]
        return longer / shorter * LENGTHS[0] / LENGTHS[1]

    def kind_passes(self, name: str) -> bool:
        return self.growth(name) <= GROWTH and self.times[name][1] <= LONGEST_S

    @property
    def passes(self) -> bool:
        return all(map(self.kind_passes, self.times))


async def measure_hostile_adds(
    folder: Path, embedder: BuiltinEmbedder, *, repeats: int = REPEATS, advance: Callable[[int], None]
) -> HostileAdds:
    """Add each message to a user of its own, both lengths in turn."""
    times = {}
    users = count()
    plain = list(statements("hostile", 2000))
    parts = {"statements": ". ".join(plain), "statements without full stops": " ".join(plain), **HOSTILE}
    async with Memory.open(folder / "hostile.db", embedder=embedder) as memory:

        async def taken(text: str) -> float:
            clear_text_caches()
            start = process_time()
            await memory.add({"role": "user", "content": text}, user_id=f"user-{next(users)}")
            return process_time() - start

        await taken("I live in Rome.")
        for name, part in parts.items():
            texts = [f"I like {part * (length // len(part) + 1)}"[: length - 1] + "." for length in LENGTHS]
            rounds = [[await taken(text) for text in texts] for _ in range(repeats)]
            shorter, longer = (min(some) for some in zip(*rounds, strict=True))
            times[name] = (shorter, longer)
            advance(1)
    return HostileAdds(times)
