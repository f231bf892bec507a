"""Import a CSV file, edit it, and import it again: rows are told apart by their key, and only edited ones change."""

import asyncio
import csv
import io
import sys

from jiyi import CandidateMemory, Memory

FIRST = """key,text
printer,The printer is on floor 3
canteen,The canteen opens at 11:30
"""
EDITED = FIRST.replace("11:30", "12:00") + "desk,Visitors sign in at the desk\n"


def rows(text: str) -> list[CandidateMemory]:
    return [CandidateMemory(content=row["text"], memory_key=row["key"]) for row in csv.DictReader(io.StringIO(text))]


async def main() -> None:
    async with Memory.open(sys.argv[1] if len(sys.argv) > 1 else "office.db") as memory:
        for text in (FIRST, EDITED):
            receipt = await memory.add(rows(text), user_id="office", on_conflict="update")
            print([row.outcome for row in receipt.rows])
        print((await memory.get("canteen", user_id="office")).content)


if __name__ == "__main__":
    asyncio.run(main())
