"""docs/cli.md tells all of the command line and nothing else; its examples can be typed in."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import typer

from jiyi.cli.app import EXIT_CODES, app
from support import each_case
from test_cli import COMMANDS

PAGE = (Path(__file__).parent.parent / "docs" / "cli.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
GENERAL = SECTIONS["General options"]


def options_of(command: Any) -> set[str]:
    return {name for param in command.params if param.param_type_name == "option" for name in param.opts}


def described(text: str) -> set[str]:
    """The options in the first column of a section's table."""
    rows = [row.split(" | ")[0] for row in text.splitlines() if row.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(-{1,2}[a-z-]+)", row)}


@each_case("name", COMMANDS)
def test_every_option_is_documented_and_every_documented_option_exists(name: str) -> None:
    section = SECTIONS[f"jiyi {name}"]
    general = described(GENERAL) & options_of(COMMANDS[name])
    assert described(section) | general == options_of(COMMANDS[name])
    assert "```console\n$ " in section, "an example"
    for param in COMMANDS[name].params:
        if param.param_type_name == "argument":
            assert f"`{param.metavar}`" in section or name == "search"


def test_every_command_is_in_the_table_and_no_other() -> None:
    assert set(re.findall(r"^\| \[`([\w-]+)`\]", PAGE, re.MULTILINE)) == COMMANDS.keys()
    assert {title.removeprefix("jiyi ") for title in SECTIONS if title.startswith("jiyi ")} == COMMANDS.keys()
    for option in options_of(typer.main.get_command(app)):
        assert f"`jiyi {option}`" in PAGE


def test_every_exit_code_is_documented() -> None:
    for code in (0, 1, 130, *EXIT_CODES.values()):
        assert f"| {code} |" in SECTIONS["Exit codes"]


def examples() -> list[str]:
    helps = "\n".join(command.help for command in COMMANDS.values())
    lines = re.findall(r"(?m)^\s*\$ (.*jiyi .*)$", PAGE + "\n" + helps)
    return sorted({line[line.index("jiyi ") :] for line in lines})


@each_case("line", examples())
def test_every_example_can_be_parsed(line: str) -> None:
    _, *words = shlex.split(line, comments=True)
    with COMMANDS[words[0]].make_context(words[0], words[1:]) as context:
        assert context.command.name == words[0]
