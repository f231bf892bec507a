"""Extractors of a program and of installed packages, and the types of memories they bring."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from jiyi import Draft, Evidence, Memory, Unit
from jiyi.memory_types import LAYERS
from jiyi.testing import ScriptedLLM, WordEmbedder
from jiyi.write.drafts import installed_extractors

# The one file of a new type.
RECIPES = """
import re

from jiyi import Draft, Evidence

TOLD = re.compile(r"recipe: [^.]+|做法：[^。]+")


class Recipes:
    id = "recipes"
    layers = {"recipe": "procedural"}

    async def __call__(self, unit, /):
        return [
            Draft(
                memory_type="recipe",
                content=found.group(),
                evidence=(Evidence(message_id=said.id, start=found.start(), end=found.end()),),
                occurred_at=said.sent_at,
                subject="user",
            )
            for said in unit.messages
            for found in TOLD.finditer(said.text)
        ]
"""
TEXTS = ["My recipe: flour, water and salt. I live in Rome.", "三杯鸡的做法：酱油、米酒、麻油。我住在罗马。"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package with an extractor, and one that cannot be loaded."""
    folder = tmp_path / "site"
    for name, target in (("recipes", "recipes:Recipes"), ("broken", "no_such_module:X")):
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[jiyi.extractors]\n{name} = {target}\n")
    (folder / "recipes.py").write_text(RECIPES, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setitem(LAYERS, "recipe", "procedural")  # removed again after the test
    monkeypatch.delitem(LAYERS, "recipe")
    installed_extractors.cache_clear()
    yield folder
    installed_extractors.cache_clear()


@pytest.mark.parametrize("text", TEXTS)
async def test_a_type_of_an_installed_package_needs_one_file(
    text: str, package: Path, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        await memory.add([{"role": "user", "content": text}], user_id="mei")
        [item] = await memory.list(user_id="mei", memory_types=["recipe"])
        assert item.layer == "procedural"
        assert [one.id for one in await memory.list(user_id="mei", layers=["procedural"])] == [item.id]
        assert await memory.count(user_id="mei", memory_types=["fact"]) > 0  # the built-in one runs too
    assert "the extractor broken" in caplog.text


def test_the_command_line_has_it_too(package: Path, path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package), *sys.path]), "JIYI_URL": str(path)}

    def run(*words: str) -> str:
        command = [sys.executable, "-c", "from jiyi.cli import main; main()", *words, "--user", "mei", "--json"]
        return subprocess.run(command, env=environment, capture_output=True, check=True, encoding="utf-8").stdout

    file = path.parent / "chat.json"
    file.write_text(json.dumps([{"role": "user", "content": text} for text in TEXTS]), encoding="utf-8")
    run("add", "--file", str(file))
    found = json.loads(run("list", "--type", "recipe"))
    assert {item["layer"] for item in found["items"]} == {"procedural"} and len(found["items"]) == 2


class Wishes:
    id = "wishes"

    async def __call__(self, unit: Unit, /) -> Sequence[Draft]:
        return [
            Draft(
                memory_type="wish",
                content=said.text,
                evidence=(Evidence(message_id=said.id),),
                occurred_at=said.sent_at,
                subject="user",
            )
            for said in unit.messages
            if "wanted" in said.text
        ]


async def test_extractors_run_beside_a_model(path: Path) -> None:
    model = ScriptedLLM('{"memories": []}')
    async with Memory.open(path, embedder=WordEmbedder(), llm=model, extractors=[Wishes()]) as memory:
        await memory.add([{"role": "user", "content": "I always wanted a telescope"}], user_id="mei")
        assert [item.content for item in await memory.list(user_id="mei", memory_types=["wish"])] == [
            "I always wanted a telescope"
        ]
