"""The synchronous face, as a script uses it: notes with tags, a correction, its history, and undoing it.

python examples/sync_script.py [FILE]
"""

import sys
import tempfile
from pathlib import Path

from jiyi.sync import Memory


def main(file: Path) -> None:
    with Memory.open(file) as memory:
        memory.add("The staging server is called heron", user_id="ops", tags=["server", "staging"])
        memory.add("The production server is called osprey", user_id="ops", tags=["server", "production"])
        memory.add("发布日是每个月的第一个星期二", user_id="ops", tags=["release"], memory_type="pattern")

        print("tagged staging or release:")
        for item in memory.list(user_id="ops", tags=["staging", "release"]).items:
            print(f"  {item.memory_type}: {item.content}  {list(item.tags)}")

        [hit] = memory.search("what is the staging server called?", user_id="ops", limit=1).hits
        memory.update(hit.id, user_id="ops", content="The staging server is called egret", reason="it was replaced")
        print(f"\nchanged:  {memory.get(hit.id, user_id='ops').content}")
        memory.restore(hit.id, user_id="ops", reason="it was not, after all")
        print(f"restored: {memory.get(hit.id, user_id='ops').content}\n")

        for change in memory.history(hit.id, user_id="ops"):
            print(f"  {change.version}  {change.action:<8}{change.after['content']}  {change.reason or ''}")

        removed = memory.delete_all("ops")
        print(f"\nremoved {removed.memories} memories; {memory.count(user_id='ops')} are left")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "notes.db")
