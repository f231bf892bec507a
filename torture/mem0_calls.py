"""Calls of mem0's REST API that delete and change, with any mixture of arguments, compared with a dictionary: what is
named is deleted or changed and nothing else, a batch is done whole or not at all, and what is unknown is refused."""

from __future__ import annotations

import asyncio
import random
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx

from .stores import stores
from .trial import Trial

PROTECTIONS = {"the refusal": "parameters that a path does not have are ignored"}
CALLS = 4_000
REFILL = 12  # memories, below which new ones are added
ENTITIES = {
    "user_id": ("u1", "u2", "u3"),
    "agent_id": ("a1", "a2"),
    "app_id": ("p1", "p2"),
    "run_id": ("r1", "r2", "r3"),
}
WRONG: tuple[dict[str, str], ...] = (
    {"metadata": '{"k": "a"}'}, {"filters": '{"run_id": "r1"}'}, {"session_id": "r1"}, {"categories": "a"},
    {"memory_ids": "x"}, {"user_id": ""}, {"run_id": " "}, {"limit": "1"}, {"org_id": "elsewhere"}, {"userId": "u1"},
)  # fmt: skip
NOBODY = "00000000-0000-0000-0000-000000000000"
ALL = {"OR": [{name: "*"} for name in ENTITIES]}


@dataclass(slots=True)
class Note:
    """A memory as it should be."""

    text: str
    entities: dict[str, str]

    def matches(self, given: dict[str, str]) -> bool:
        return all(
            self.entities.get(name) == value or (value == "*" and name in self.entities)
            for name, value in given.items()
        )


class Caller:
    """A client, and the notes that the server should have."""

    def __init__(self, trial: Trial, web: httpx.Client, rng: random.Random) -> None:
        self.trial, self.web, self.rng = trial, web, rng
        self.notes: dict[str, Note] = {}
        self.number = 0

    def add(self) -> None:
        names = self.rng.sample(list(ENTITIES), self.rng.randint(1, 4))
        entities = {name: self.rng.choice(ENTITIES[name]) for name in names}
        self.number += 1
        body = {"messages": f"note {self.number}", "infer": False, **entities}
        added = self.web.post("/v3/memories/add/", json=body).raise_for_status().json()["results"]
        self.notes |= {one["id"]: Note(one["memory"], entities) for one in added}

    def call(self) -> None:
        """Make a call; note a result that differs from what it should be."""
        verb = self.rng.choice(
            (self._delete_all, self._delete_all, self._delete, self._batch_delete, self._batch_update)
        )
        told, expected = verb()
        self.trial.counts["calls that delete or change"] += 1
        status = told.split()[-1]
        found = self._stored()
        if found != {name: note.text for name, note in self.notes.items()} or status != expected:
            lost, left = self.notes.keys() - found.keys(), found.keys() - self.notes.keys()
            self.trial.breaks("lost" if lost else "false success", f"{told}, not {expected}: {len(lost)}/{len(left)}")
            self.notes = {name: note for name, note in self.notes.items() if name in found}

    def _stored(self) -> dict[str, str]:
        found = self.web.post("/v3/memories/", params={"page_size": 1000}, json={"filters": ALL}).raise_for_status()
        return {one["id"]: one["memory"] for one in found.json()["results"]}

    def _delete_all(self) -> tuple[str, str]:
        names = self.rng.sample(list(ENTITIES), self.rng.choice((1, 1, 2, 2, 3, 4)))
        given = {name: self.rng.choice((*ENTITIES[name], *ENTITIES[name], "*")) for name in names}
        wrong = self.rng.choice(WRONG) if self.rng.random() < 0.4 else {}
        if self.rng.random() < 0.03:
            given, wrong = {}, {}
        answer = self.web.delete("/v1/memories/", params={**given, **wrong})
        if wrong or not given:
            self.trial.counts["of them refused"] += 1
            return f"delete_all {given | wrong} {answer.status_code}", "422"
        gone = [name for name, note in self.notes.items() if note.matches(given)]
        for name in gone:
            del self.notes[name]
        if bool(gone) != answer.json()["message"].startswith("Memories deleted"):
            self.trial.breaks("false success", f"delete_all {given} told {answer.json()}, and {len(gone)} matched")
        return f"delete_all {given} {answer.status_code}", "200"

    def _delete(self) -> tuple[str, str]:
        name = self.rng.choice([*self.notes, NOBODY])
        wrong = self.rng.choice((*WRONG, {"delete_linked": "true"})) if self.rng.random() < 0.4 else {}
        answer = self.web.delete(f"/v1/memories/{name}/", params=wrong)
        if wrong:
            self.trial.counts["of them refused"] += 1
            return f"delete {wrong} {answer.status_code}", "422"
        return f"delete {answer.status_code}", "404" if self.notes.pop(name, None) is None else "200"

    def _some(self) -> tuple[list[str], str]:
        """Return ids for a batch, and the status that it should get."""
        ids = self.rng.sample(list(self.notes), min(len(self.notes), self.rng.randint(1, 4)))
        chance = self.rng.random()
        if chance < 0.3:
            ids.insert(self.rng.randint(0, len(ids)), NOBODY)
        elif chance < 0.5:
            ids.append(ids[0])
        self.trial.counts["batches"] += 1
        return ids, "404" if chance < 0.3 else "422" if chance < 0.5 else "200"

    def _batch_delete(self) -> tuple[str, str]:
        ids, expected = self._some()
        entries: list[dict[str, Any]] = [{"memory_id": name} for name in ids]
        if expected == "200" and self.rng.random() < 0.3:
            entries[-1]["run_id"], expected = "r1", "422"
        answer = self.web.request("DELETE", "/v1/batch/", json={"memories": entries})
        for name in ids if expected == "200" else ():
            del self.notes[name]
        return f"batch_delete of {len(ids)} {answer.status_code}", expected

    def _batch_update(self) -> tuple[str, str]:
        ids, expected = self._some()
        self.number += 1
        entries: list[dict[str, Any]] = [{"memory_id": name, "text": f"{self.number} {name}"} for name in ids]
        if expected == "200" and self.rng.random() < 0.3:
            entries[-1]["user_id"], expected = "u1", "422"
        answer = self.web.put("/v1/batch/", json={"memories": entries})
        for name in ids if expected == "200" else ():
            self.notes[name].text = f"{self.number} {name}"
        return f"batch_update of {len(ids)} {answer.status_code}", expected


async def run(trial: Trial) -> None:
    async for kind, place in stores(trial):
        await asyncio.to_thread(_play, trial, kind, place)


def _play(trial: Trial, kind: str, place: str | Path) -> None:
    from rest import running

    generous = {"burst": 10**6, "requests_per_minute": 10**6}
    with running(place, server=generous) as server, ExitStack() as off:
        key = server.key(scopes=("read", "write", "delete"))
        web = off.enter_context(
            httpx.Client(base_url=server.url, headers={"Authorization": f"Token {key}"}, timeout=60)
        )
        if trial.without is not None:
            off.enter_context(patch("jiyi.server.routes.mem0._refuse_others", _ignore))
        caller = Caller(trial, web, trial.chances(kind))
        for _ in range(trial.times(CALLS // 2, least=30)):
            while len(caller.notes) < REFILL:
                caller.add()
            caller.call()


async def _ignore(request: Any) -> None:
    """Let everything pass."""
