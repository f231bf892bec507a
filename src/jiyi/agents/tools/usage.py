"""Usage counters and call limits of the tools, per agent and user, in this process."""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from ...engine import runtime
from ...memory import Memory
from ...metrics import Meter
from ...models import Value
from ...rate_limit import TokenBucket
from ...settings import ToolSettings

_MAX_AGENTS = 10_000  # per memory; the least recently seen are dropped
_MAX_KEYS = 10_000


class ToolUsage(Value):
    """Counters of an agent's tool calls. A rate is None while its denominator is 0."""

    turns: int
    turns_with_calls: int
    calls: dict[str, int]
    failed: int
    limited: int
    repeated: int
    searches: int
    searches_with_hits: int
    recalled: int
    proactive: int
    used: int

    @property
    def tool_use_rate(self) -> float | None:
        """Share of turns in which the agent called a tool."""
        return self.turns_with_calls / self.turns if self.turns else None

    @property
    def hit_rate(self) -> float | None:
        """Share of searches with a relevant result."""
        return self.searches_with_hits / self.searches if self.searches else None

    @property
    def usefulness(self) -> float | None:
        """Share of recalled memories that were read in full, changed or cited afterwards."""
        return self.used / self.recalled if self.recalled else None


class Activity:
    """The counters of one agent."""

    def __init__(self, settings: ToolSettings, meter: Meter) -> None:
        self._meter = meter
        self.bucket = TokenBucket(-(-settings.calls_per_minute // 2), settings.calls_per_minute)
        self.calls: Counter[str] = Counter()
        self.turns = self.turns_with_calls = self.failed = self.limited = self.repeated = 0
        self.searches = self.searches_with_hits = self.recalled = self.proactive = self.used = 0
        self._unused: OrderedDict[str, None] = OrderedDict()  # recalled and not used yet
        self._called_in_turn = False

    def turn(self) -> None:
        self.turns += 1
        self._called_in_turn = False
        self._meter.count("agent_turns_total")

    def call(self, name: str) -> None:
        self.calls[name] += 1
        if self.turns and not self._called_in_turn:
            self.turns_with_calls += 1
            self._meter.count("agent_turns_with_calls_total")
        self._called_in_turn = True

    def recall(self, keys: Iterable[str], *, asked: bool) -> None:
        for key in keys:
            self.recalled += 1
            self.proactive += not asked
            self._meter.count("agent_recalled_total", "yes" if asked else "no")
            self._unused[key] = None
            self._unused.move_to_end(key)
        while len(self._unused) > _MAX_KEYS:
            self._unused.popitem(last=False)

    def use(self, key: str) -> None:
        if key in self._unused:
            del self._unused[key]
            self.used += 1
            self._meter.count("agent_used_total")

    def cite(self, text: str) -> None:
        for key in [key for key in self._unused if key in text]:
            self.use(key)

    def usage(self) -> ToolUsage:
        return ToolUsage(
            calls=dict(self.calls),
            **{name: getattr(self, name) for name in ToolUsage.model_fields if name != "calls"},
        )


_records: WeakKeyDictionary[Memory, OrderedDict[tuple[str, str | None], Activity]] = WeakKeyDictionary()


def activity_of(memory: Memory, user_id: str, agent_id: str | None) -> Activity:
    """Return the counters of an agent, shared by all its `MemoryTools`."""
    agents = _records.setdefault(memory, OrderedDict())
    record = agents.setdefault((user_id, agent_id), Activity(runtime(memory).settings.tools, runtime(memory).meter))
    agents.move_to_end((user_id, agent_id))
    while len(agents) > _MAX_AGENTS:
        agents.popitem(last=False)
    return record
