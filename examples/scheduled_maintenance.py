"""What a scheduler such as cron runs each night: finish jobs, tidy up, back up, and complain if something fails."""

import sys
from pathlib import Path

from jiyi import JiyiError
from jiyi.sync import Memory


def maintain(store: Path, backup: Path) -> None:
    with Memory.open(store) as memory:
        print("jobs done:", memory.jobs.work())
        memory.maintenance.run(user_id="mei")
        memory.transfer.backup(backup)
        for check in memory.health().checks:
            if not check.ok:
                print(f"{check.name}: {check.problem}", file=sys.stderr)


def main() -> None:
    store = Path(sys.argv[1] if len(sys.argv) > 1 else "memory.db")
    backup = store.with_suffix(".backup.db")
    with Memory.open(store) as memory:
        memory.add("I live in Rome", user_id="mei")
        print("memories:", memory.count(user_id="mei"))
    try:
        maintain(store, backup)
    except JiyiError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    print("backup:", backup.exists())


if __name__ == "__main__":
    main()
