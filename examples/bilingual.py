"""Chinese and English in one memory: asked in either language, and in both at once.

python examples/bilingual.py [FILE]
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from jiyi import Memory

KNOWN = [
    "我吃素，对花生过敏",
    "猫叫豆豆，三岁了",
    "The parser is written in Rust, version v2.1",
    "Her sister is getting married in June",
    "臺北的會議改到星期五",
]
ASKED = [
    "what food is she allergic to?",  # English → Chinese
    "妹妹什么时候结婚？",  # Chinese → English
    "用 Rust 写的 parser",  # both in one query
    "豆豆",  # a name of two characters
    "v2.1",  # a version number
    "台北会议",  # simplified finds traditional
]


async def main(file: Path) -> None:
    async with Memory.open(file) as memory:
        await memory.add(KNOWN, user_id="mei")
        for query in ASKED:
            found = await memory.search(query, user_id="mei", limit=1, explain=True)
            for hit in found.hits:
                why = hit.explanation
                parts = ", ".join(f"{part.name} {part.value:.2f}" for part in why.parts) if why else ""
                print(f"{query}\n    → {hit.summary}\n      {hit.relevance_score:.2f} = {parts}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "bilingual.db"))
