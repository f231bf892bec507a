"""mem0's interface over a Jiyi memory: `Memory` and `AsyncMemory` with mem0's arguments and results.

    from jiyi.compat.mem0 import Memory

    memory = Memory()
    memory.add("I am allergic to peanuts", user_id="mei")
    memory.search("what can she eat?", filters={"user_id": "mei"})

`jiyi serve` answers mem0's own clients; see docs/integrations/mem0.md.
"""

from .memory import AsyncMemory, Memory

__all__ = ["AsyncMemory", "Memory"]
