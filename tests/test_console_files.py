"""The console's files: both languages, no way from text to markup, nothing from elsewhere."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import get_args

from browser import FOLDER
from jiyi.memory_types import LAYERS
from jiyi.models import RelationType, Revision
from jiyi.read.presets import Weights
from jiyi.read.score import INPUTS

FURTHER = ("bias", "at that time", "has ended", "unsupported", "all keywords", "not read")


def sources() -> dict[str, str]:
    return {str(file.relative_to(FOLDER)): file.read_text() for file in FOLDER.rglob("*") if file.is_file()}


def words(text: str) -> dict[str, str]:
    return dict(re.findall(r'^ {2}"?([\w ]+)"?: ("(?:[^"\\]|\\.)*"),$', text, re.MULTILINE))


def test_both_languages_say_the_same_things() -> None:
    files = sources()
    english, chinese = (
        words(files[f"js/words/{name}.js"]) | words(files[f"js/words/pages_{name}.js"]) for name in ("en", "zh")
    )
    assert english.keys() == chinese.keys()
    for name, text in english.items():
        assert sorted(re.findall(r"{\w+}", text)) == sorted(re.findall(r"{\w+}", chinese[name])), name
    code = "\n".join(text for name, text in files.items() if name.startswith("js/") and "words" not in name)
    used = set(re.findall(r'\bt\(\s*"(\w+)"', code))
    assert used <= english.keys()
    begun = tuple(re.findall(r"\bt\(`(\w+?)\$\{", code)) + tuple(
        f"{kind}_" for kind in re.findall(r'named\("(\w+)"', code)
    )
    unused = {
        name
        for name in english.keys() - used
        if not name.startswith(begun) and not name.endswith("_one") and f'"{name}"' not in code
    }
    assert not unused


def test_whatever_the_engine_names_has_words() -> None:
    files = sources()
    named = set(re.findall(r'^ {2}"?([\w ]+)"?: \["[^"]+", "[^"]+"\],$', files["js/words/names.js"], re.MULTILINE))
    parts = [field.name for field in fields(Weights) if field.name != "half_life_days"]
    evidence = {*INPUTS, *FURTHER}
    assert {f"part_{name}" for name in (*parts, *evidence)} | {f"about_{name}" for name in evidence} <= named
    assert {f"type_{name}" for name in LAYERS} <= named
    actions = get_args(Revision.model_fields["action"].annotation)
    relations = get_args(RelationType)
    wanted = {f"action_{name}" for name in actions} | {f"relation_{name}" for name in relations}
    assert wanted <= words(files["js/words/en.js"]).keys()


def test_no_code_that_could_make_markup_of_text() -> None:
    """Text becomes text nodes only; nothing is loaded from elsewhere, and no file is too long to be read."""
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|srcdoc|\beval\b|new Function"
        r"|setAttribute\(\"style|DOMParser|javascript:"
    )
    for name, text in sources().items():
        allowed = text.replace('const NEVER = new Set(["style", "innerHTML", "outerHTML", "srcdoc"]);', "")
        assert not forbidden.search(allowed), name
        hosts = set(re.findall(r"https?://([\w.]+)", allowed)) - {"www.w3.org"}
        assert not hosts, (name, hosts)
        assert len(text.splitlines()) <= 450, name
    page = sources()["index.html"]
    assert not re.search(r"<style|\bstyle=|\bon\w+=|<script(?![^>]*\bsrc=)", page)


def test_all_modules_are_fetched_at_once() -> None:
    """Without these links a browser finds the modules level by level, and waits for each level."""
    files = sources()
    linked = set(re.findall(r'<link rel="modulepreload" href="([^"]+)">', files["index.html"]))
    assert linked | {"js/early.js", "js/main.js"} == {name for name in files if name.endswith(".js")}
