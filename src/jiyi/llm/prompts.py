"""Prompts: template files that a user can replace; the version of a prompt is stored with its memories.

A file has two parts, `# system` and `# user`, with placeholders `{{name}}`. Files in the user's folder replace those of
the same path here: `en/production/memories.md`, `zh/judge.md`, …
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from ..errors import SettingsError
from . import LLMRequest

BUILT_IN = Path(__file__).parent / "templates"

PromptLanguage = Literal["zh", "en"]
PromptSet = Literal["production", "eval"]

# Tasks with the required and optional placeholders of their prompts.
PLACEHOLDERS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "memories": (
        frozenset({"conversation"}),
        frozenset({"known", "earlier", "participants", "instructions", "categories"}),
    ),
    "episodes": (frozenset({"conversation"}), frozenset({"earlier", "participants", "instructions"})),
    "judge": (frozenset({"pairs"}), frozenset()),
    "verify": (frozenset({"conversation", "memories"}), frozenset({"earlier"})),
    "answer": (frozenset({"question", "memories"}), frozenset()),
    "expand": (frozenset({"query"}), frozenset()),
    "compress": (frozenset({"memories"}), frozenset()),
    "keywords": (frozenset({"content"}), frozenset({"summary", "memory_type", "max_keywords"})),
}
IN_SETS = ("memories", "episodes")  # tasks with a `production` and an `eval` prompt

_PART = re.compile(r"^# (system|user)[ \t]*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{\{ *(\w+) *\}\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of a task in one language. `version`: name and hash of the file."""

    task: str
    version: str
    system: str
    user: str

    @property
    def placeholders(self) -> frozenset[str]:
        return frozenset(_PLACEHOLDER.findall(self.system + self.user))

    def request(self, schema: dict[str, object], **values: str) -> LLMRequest:
        """Fill in the placeholders; placeholders inside the values are not filled in."""

        def fill(text: str) -> str:
            return _PLACEHOLDER.sub(lambda place: values[place.group(1)], text)

        return LLMRequest(task=self.task, system=fill(self.system), user=fill(self.user), schema=schema)


class Prompts:
    """The prompts of a folder, and the built-in ones."""

    def __init__(self, folder: Path | None, prompt_set: PromptSet) -> None:
        if folder is not None and not folder.is_dir():
            raise SettingsError(f"llm.prompts: {folder} is not a folder")
        self._folder = folder
        self._set = prompt_set
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
    places = set(_PLACEHOLDER.findall(text))
    required, optional = PLACEHOLDERS[task]
    missing, unknown = required - places, places - required - optional
    if missing or unknown:
        wrong = [f"lacks {{{{{place}}}}}" for place in sorted(missing)]
        wrong += [f"has {{{{{place}}}}}, which is not a placeholder of this task" for place in sorted(unknown)]
        raise SettingsError(f"the prompt {path} {', '.join(wrong)}")
    digest = sha256(text.encode()).hexdigest()[:8]
    return Prompt(task, f"{name}@{digest}", parts[2].strip(), parts[4].strip())
