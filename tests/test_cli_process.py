"""`jiyi` as its own process: start-up, pipes, signals, questions at a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest

from jiyi.sync import Memory
from jiyi.testing import WordEmbedder

F_SETPIPE_SZ = 1031  # of Linux; `fcntl` knows it by name on some versions only
# What runs in the background of a shell ignores Ctrl-C, and so do its children, unless they are told otherwise.
HEEDS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
JIYI = [sys.executable, "-c", f"{HEEDS}; from jiyi.cli import main; main()"]


def start(*words: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*JIYI, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **options,  # type: ignore[call-overload]
    )


@pytest.fixture
def filled(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with Memory.open(path, embedder=WordEmbedder()) as memory:
        memory.add([f"记忆 {number} " + "长 " * 50 for number in range(30)], user_id="mei")
    monkeypatch.setenv("JIYI_URL", str(path))
    monkeypatch.setenv("JIYI_USER", "mei")
    return path


def test_help_loads_nothing_heavy() -> None:
    """How long it takes, `make bench` measures."""
    heavy = "{'sqlalchemy', 'pydantic', 'numpy', 'jiyi.memory', 'jiyi.models', 'jiyi.settings'}"
    check = f"import sys, atexit; atexit.register(lambda: sys.stderr.write(str({heavy} & sys.modules.keys())))\n"
    shown = subprocess.run(
        [sys.executable, "-c", check + JIYI[2], "--help"], capture_output=True, check=True, text=True
    )
    assert shown.stderr == "set()"


@pytest.mark.parametrize("words", [("list", "--json"), ("list",), ("--help",)])
@pytest.mark.usefixtures("filled")
def test_a_reader_that_goes_away_is_no_reason_for_noise(words: tuple[str, ...]) -> None:
    with start(*words) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 1


def test_ctrl_c_is_quiet_and_leaves_nothing_behind(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with start("demo", env={**os.environ, "TMPDIR": str(temporary)}) as process:
        assert process.stdout is not None
        fcntl.fcntl(process.stdout, F_SETPIPE_SZ, 4096)  # it has more to say, and waits until that is read
        said = b""
        while not said.endswith("1 · ".encode()):  # the first scene has begun; the model is being loaded
            said += os.read(process.stdout.fileno(), 1)  # no more, or it could come to its end meanwhile
        process.send_signal(signal.SIGINT)
        assert process.communicate()[1] == ""
        assert process.returncode == 130
    assert list(temporary.iterdir()) == []


def test_ctrl_c_on_an_import_says_how_to_go_on(tmp_path: Path, path: Path) -> None:
    chat = [{"role": "user", "content": f"I read book number {number}", "timestamp": number} for number in range(4000)]
    (tmp_path / "chat.json").write_text(json.dumps(chat), encoding="utf-8")
    with start("import", str(tmp_path / "chat.json"), "--store", str(path), "--user", "mei") as process:
        while process.poll() is None and not (path.exists() and path.stat().st_size > 1_000_000):
            sleep(0.05)
        process.send_signal(signal.SIGINT)
        told = process.communicate()[1]
        assert process.returncode == 130, told
        assert "Run the same command again to go on" in told
    with Memory.open(path, embedder=WordEmbedder()) as memory:
        assert memory.list(user_id="mei", memory_types=["message"], limit=5).items


@pytest.mark.usefixtures("filled")
def test_stdout_is_json_alone_even_where_it_must_be_ascii() -> None:
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*JIYI, "list", "--limit", "1", "--json"], capture_output=True, check=True, env=ascii_only)
    assert json.loads(done.stdout)["items"][0]["content"].startswith("记忆 29")
    shown = subprocess.run([*JIYI, "list", "--limit", "1"], capture_output=True, check=True, env=ascii_only)
    assert b"29" in shown.stdout


def test_a_person_is_asked_before_anything_is_deleted(filled: Path) -> None:
    def asked(*words: str, typed: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        try:
            with start(*words, stdin=theirs) as process:
                os.write(ours, typed.encode())
                out, question = process.communicate(timeout=60)
                assert not process.returncode or out == ""
                return process.returncode, question
        finally:
            os.close(ours)
            os.close(theirs)

    code, question = asked("delete", "--user", "mei", "--all", typed="yes\n")
    assert code == 1 and "30 active memories" in question and "nothing was deleted" in question
    code, _ = asked("delete", "--user", "mei", "--all", typed="mei\n")
    assert code == 0
    with Memory.open(filled, embedder=WordEmbedder()) as memory:
        assert memory.stats().memories == 0
