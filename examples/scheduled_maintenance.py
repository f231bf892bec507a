"""What a scheduler such as cron runs each night: finish jobs, tidy up every user, back up, and fail loudly.

    15 3 * * *  python scheduled_maintenance.py /srv/memory.db

Of two runs at the same time one does the work. The exit code is 1 if a check fails, so that cron sends a mail.
"""

import sys
from pathlib import Path

from jiyi import JiyiError
from jiyi.sync import Memory

KEPT_BACKUPS = 7


def rotate(backup: Path) -> None:
    """Keep the newest backups: backup.1 is yesterday's."""
    for number in range(KEPT_BACKUPS, 0, -1):
        older = backup.with_name(f"{backup.name}.{number}")
        newer = backup if number == 1 else backup.with_name(f"{backup.name}.{number - 1}")
        if newer.exists():
            newer.replace(older)


def maintain(store: Path, backup: Path) -> bool:
    """Return True if every check is ok."""
    with Memory.open(store) as memory:
        print("jobs done:", memory.jobs.work())
        for user_id in memory.users():
            memory.maintenance.run(user_id=user_id)
        rotate(backup)
        memory.transfer.backup(backup)
        print("backup:", backup.name, "of", memory.stats().memories, "memories")
        problems = [f"{check.name}: {check.problem}" for check in memory.health().checks if not check.ok]
    for problem in problems:
        print(problem, file=sys.stderr)
    return not problems


def main() -> None:
    store = Path(sys.argv[1] if len(sys.argv) > 1 else "memory.db")
    if not store.exists():  # so that the program shows something when it is tried
        with Memory.open(store) as memory:
            memory.add("I live in Rome", user_id="mei")
    backup = store.with_name(f"{store.stem}.backup.db")
    try:
        is_sound = maintain(store, backup)
    except JiyiError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    print("backups kept:", len(list(store.parent.glob(f"{backup.name}*"))))
    if not is_sound:
        sys.exit(1)


if __name__ == "__main__":
    main()
