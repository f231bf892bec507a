"""Old chats are imported with the times and ids they have. Importing twice makes nothing new.

python examples/import_chat.py [FILE]
"""

import asyncio
import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from jiyi import Memory

EXPORT = """
[
  {"id": "m1", "role": "user", "name": "Mei", "timestamp": "2023-05-08T19:02:00+08:00",
   "content": "Last week I adopted a cat. She is called 豆豆."},
  {"id": "m2", "role": "assistant", "timestamp": "2023-05-08T19:02:10+08:00",
   "content": "Congratulations! How old is she?"},
  {"id": "m3", "role": "user", "name": "Mei", "timestamp": "2023-05-08T19:03:00+08:00",
   "content": "三岁了，特别爱睡觉"},
  {"id": "m4", "role": "user", "name": "Tom", "timestamp": "2024-01-20T09:30:00Z",
   "content": [{"type": "text", "text": "We moved the release of the parser to March."}]}
]
"""


async def main(file: Path) -> None:
    messages = json.loads(EXPORT)
    async with Memory.open(file) as memory:
        for attempt in ("first", "second"):
            receipt = await memory.add(messages, user_id="mei", session_id="old chat")
            print(f"{attempt} import: {receipt.state}, {receipt.created} of {len(receipt.memories)} memories are new")

        print("\nWhat is known about the cat?")
        found = await memory.search("how old is the cat 豆豆?", user_id="mei", limit=2)
        for hit in found.hits:
            print(f"  {hit.relevance_score:.2f}  {hit.occurred_at:%Y-%m-%d}  {hit.source_ids[0]}  {hit.summary}")

        print("\nWhat was said in 2024?")
        year = (datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC))
        for item in (await memory.list(user_id="mei", memory_types=["message"], time_range=year)).items:
            print(f"  {item.data['speaker']}: {item.content}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "import.db"))
