"""Three processes write to one file at the same time; nothing is lost and nothing is doubled.

python examples/several_processes.py [FILE]
"""

import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path

from jiyi.sync import Memory
from jiyi.testing import WordEmbedder  # quick to load; the built-in embedder would do as well

WRITERS, NOTES = 3, 5


def write(file: str, writer: int) -> None:
    with Memory.open(file, embedder=WordEmbedder()) as memory:
        for number in range(NOTES):
            memory.add(f"note {number} of writer {writer}", user_id="team", agent_id=f"writer {writer}")
            memory.add(f"everybody knows fact {number}", user_id="team")  # the same in every process


def main(file: Path) -> None:
    processes = [get_context("spawn").Process(target=write, args=(str(file), writer)) for writer in range(WRITERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    with Memory.open(file, embedder=WordEmbedder()) as memory:
        print(f"exit codes: {[process.exitcode for process in processes]}")
        print(f"memories:   {memory.count(user_id='team')} = {WRITERS} × {NOTES} notes + {NOTES} facts known to all")
        print(f"writer 2:   {memory.count(user_id='team', agent_id='writer 2')}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "team.db")
