"""What models are told: files that a user can replace, each with a version that is kept on what it produced.

A file has two parts, `# system` and `# user`; `{{name}}` stands for what is filled in. Files of the user's folder win
over those of the same path here: `en/production/memories.md`, `zh/judge.md`, …
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from ..errors import SettingsError
from . import Question

BUILT_IN = Path(__file__).parent / "templates"

PromptLanguage = Literal["zh", "en"]
PromptSet = Literal["production", "eval"]

# Which tasks there are: what each one's prompt must leave room for, and what else it may.
PLACES: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "memories": (frozenset({"conversation"}), frozenset({"earlier", "participants"})),
    "episodes": (frozenset({"conversation"}), frozenset({"earlier", "participants"})),
    "judge": (frozenset({"pairs"}), frozenset()),
    "expand": (frozenset({"query"}), frozenset()),
    "compress": (frozenset({"memories"}), frozenset()),
    "keywords": (frozenset({"content"}), frozenset({"summary", "memory_type", "max_keywords"})),
}
IN_SETS = ("memories", "episodes")  # these come as `production` and as `eval`

_PART = re.compile(r"^# (system|user)[ \t]*$", re.MULTILINE)
_PLACE = re.compile(r"\{\{ *(\w+) *\}\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One task's words in one language. `version` names the file and its content."""

    task: str
    version: str
    system: str
    user: str

    def question(self, schema: dict[str, object], **values: str) -> Question:
        """The prompt filled in. What is filled in is not looked at again, so that no text can fill in another."""

        def fill(text: str) -> str:
            return _PLACE.sub(lambda place: values[place.group(1)], text)

        return Question(task=self.task, system=fill(self.system), user=fill(self.user), schema=schema)


class Prompts:
    def __init__(self, folder: Path | None, chosen: PromptSet) -> None:
        if folder is not None and not folder.is_dir():
            raise SettingsError(f"llm.prompts: {folder} is no folder")
        self._folder = folder
        self._set = chosen
        self._read: dict[str, Prompt] = {}

    def get(self, task: str, language: PromptLanguage) -> Prompt:
        name = f"{language}/{self._set}/{task}" if task in IN_SETS else f"{language}/{task}"
        if name not in self._read:
            self._read[name] = self._load(name, task)
        return self._read[name]

    def _load(self, name: str, task: str) -> Prompt:
        own = self._folder / f"{name}.md" if self._folder is not None else None
        path = own if own is not None and own.is_file() else BUILT_IN / f"{name}.md"
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise SettingsError(f"the prompt {path} cannot be read: {error}") from error
        return parse(text, name, task, path)


def parse(text: str, name: str, task: str, path: Path) -> Prompt:
    parts = _PART.split(text)
    if parts[1::2] != ["system", "user"]:
        raise SettingsError(f"the prompt {path} must have the lines `# system` and `# user`, in this order")
    places = set(_PLACE.findall(text))
    required, optional = PLACES[task]
    missing, unknown = required - places, places - required - optional
    if missing or unknown:
        wrong = [f"lacks {{{{{place}}}}}" for place in sorted(missing)]
        wrong += [f"has {{{{{place}}}}}, which nothing fills in" for place in sorted(unknown)]
        raise SettingsError(f"the prompt {path} {', '.join(wrong)}")
    digest = sha256(text.encode()).hexdigest()[:8]
    return Prompt(task, f"{name}@{digest}", parts[2].strip(), parts[4].strip())
