"""Doubles for tests of programs that use Jiyi: quick, deterministic, without a model."""

import gzip
import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np

from . import models
from .embed import Vectors
from .errors import EmbeddingError
from .languages.terms import term_hash, tokens
from .llm import LLMRequest, Reply
from .reader import Passage, Verdict


class WordEmbedder:
    """Texts that share words are similar: each word points into a direction of its own."""

    def __init__(self, dimension: int = 64, name: str = "words") -> None:
        self.dimension = dimension
        self.id = f"testing:{name}@{dimension}"

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._embed(text) for text in texts])

    async def embed_query(self, text: str) -> Vectors:
        return self._embed(text)

    def _embed(self, text: str) -> Vectors:
        vector = np.zeros(self.dimension, np.float32)
        for word in tokens(text):
            vector[term_hash(word) % self.dimension] += 1.0
        return vector


class ScriptedReader:
    """A reader for which texts with a certain word answer every question, and a newer statement with a certain word
    ends every older one with another."""

    def __init__(self, word: str, *, ends: tuple[str, str] | None = None, probability: float = 0.99) -> None:
        self.id = f"testing:{word}"
        self.asked: list[tuple[str, Sequence[Passage]]] = []
        self.judged: list[tuple[Passage, Sequence[Passage]]] = []
        self._word, self._ends, self._probability = word, ends, probability

    def answers(self, question: str, passages: Sequence[Passage]) -> list[float | None]:
        self.asked.append((question, passages))
        return [6.0 if self._word in passage.text else -6.0 for passage in passages]

    def changes(self, newer: Passage, older: Sequence[Passage]) -> list[Verdict | None]:
        self.judged.append((newer, older))
        return [self._verdict(newer.text, one.text) for one in older]

    def _verdict(self, newer: str, older: str) -> Verdict:
        if self._ends is not None and self._ends[0] in newer and self._ends[1] in older:
            return Verdict(self._probability, 0.0, 1 - self._probability)
        return Verdict(0.0, 0.0, 1.0)

    def supports(self, messages: Sequence[Passage], memory: str) -> float | None:
        return 0.9 if any(self._word in one.text for one in messages) else 0.1


class FailingEmbedder(WordEmbedder):
    """An embedder that can be switched off, as an endpoint that is down."""

    def __init__(self, dimension: int = 64, name: str = "words") -> None:
        super().__init__(dimension, name)
        self.failing = True

    def _embed(self, text: str) -> Vectors:
        if self.failing:
            raise EmbeddingError(f"{self.id} is switched off")
        return super()._embed(text)


class ScriptedLLM:
    """A language model that gives prepared replies in order and the last one again; `requests` are those it got.

    memory = Memory.open(path, llm=ScriptedLLM('{"memories": []}'))
    """

    id = "testing:scripted"

    def __init__(self, *replies: str) -> None:
        self.requests: list[LLMRequest] = []
        self._replies = list(replies)

    async def reply(self, request: LLMRequest) -> Reply:
        self.requests.append(request)
        text = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        return Reply(text=text, cut_off=False, usage=None)

    async def close(self) -> None:
        """Nothing is open."""


class ReplayLLM:
    """A language model that answers Jiyi's prompts with recorded memories, as good as the model that wrote them.

        memory = Memory.open(path, llm=ReplayLLM.stories("memories.json.gz")["story-1"])

    `sessions` are those of one story: `{"memories": [{"text", "type", "subject", "attribute", "value", "messages",
    "quote", "occurred_at", "importance", "ends": [{"subject", "attribute", "value"}]}]}` each. A memory is the answer
    where the conversation contains its quote; it ends those of its `ends` that the prompt lists as known.
    """

    id = "testing:replay"
    TYPES: ClassVar = {"plan": "task", "instruction": "preference"} | dict.fromkeys(
        ("profile", "relationship", "decision"), "fact"
    )

    def __init__(self, sessions: Sequence[dict[str, Any]]) -> None:
        self.requests: list[LLMRequest] = []
        self._sessions = [session["memories"] for session in sessions]
        self._about: dict[tuple[str, ...], str] = {}  # text by subject, attribute and value
        for one in self._recorded():
            self._about[_about(one)] = one["text"]

    @classmethod
    def stories(cls, path: str | Path) -> dict[str, Self]:
        """Read a file of recorded stories, which may be compressed."""
        data = Path(path).read_bytes()
        text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        return {story: cls(sessions) for story, sessions in json.loads(text)["stories"].items()}

    async def reply(self, request: LLMRequest) -> Reply:
        self.requests.append(request)
        answer: dict[str, Any] = {request.task: []}
        if request.task == "memories":
            answer = {"memories": self._memories(request.user)}
        elif request.task == "judge":
            answer = {"judgements": self._judgements(request.user)}
        return Reply(text=json.dumps(answer, ensure_ascii=False), cut_off=False, usage=None)

    async def close(self) -> None:
        """Nothing is open."""

    def _recorded(self) -> Iterable[dict[str, Any]]:
        return (one for session in self._sessions for one in session)

    def _memories(self, prompt: str) -> list[dict[str, Any]]:
        lines = {int(number): text for number, text in re.findall(r"^\[(\d+)\] \([^)]*\) (.*)$", prompt, re.MULTILINE)}
        known = dict(re.findall(r"^\[K(\d+)\] (?:\([^)]*\) )?(.*)$", prompt, re.MULTILINE))
        best: list[tuple[dict[str, Any], list[int]]] = []
        for session in self._sessions:
            places = [(one, number) for one in session for number in lines if _holds(lines[number], one["quote"])]
            # The same distance between line and message for all: a short quote may be in other sessions too.
            shifts = Counter(number - message for one, number in places for message in one["messages"])
            shift = shifts.most_common(1)[0][0] if shifts else 0
            fitting = [
                (one, [number, *sorted({at + shift for at in one["messages"]} & lines.keys() - {number})])
                for one, number in places
                if number - shift in one["messages"]
            ]
            best = max(best, fitting, key=len)
        return [self._proposal(one, numbers, known) for one, numbers in best]

    def _proposal(self, one: dict[str, Any], numbers: list[int], known: dict[str, str]) -> dict[str, Any]:
        over = {_plain(self._about[_about(end)]) for end in one.get("ends", ()) if _about(end) in self._about}
        return {
            **{name: one.get(name) for name in ("quote", "text", "subject", "attribute", "value", "importance")},
            "messages": numbers,
            "type": self.TYPES.get(one["type"], one["type"]),
            "ended": False,
            "replaces": None,
            "when": one.get("occurred_at"),
            "keywords": [],
            "ends": [int(number) for number, text in known.items() if _plain(text) in over],
        }

    def _judgements(self, prompt: str) -> list[dict[str, Any]]:
        ended = {
            _plain(one["text"]): {_plain(self._about.get(_about(end), "")) for end in one.get("ends", ())}
            for one in self._recorded()
        }
        texts: dict[int, list[str]] = {}
        for number, text in re.findall(r"^\[(\d+)\] [^:]*\): (.*)$", prompt, re.MULTILINE):
            texts.setdefault(int(number), []).append(_plain(text))
        actions = {
            number: "supersede" if old in ended.get(new, ()) else "ignore" if old == new else "keep_both"
            for number, (old, new) in texts.items()
        }
        return [
            {"pair": number, "action": action, "reason": "recorded", "merged": None}
            for number, action in actions.items()
        ]


def _about(one: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(one.get(name)) for name in ("subject", "attribute", "value"))


def _plain(text: str) -> str:
    """Letters and digits only, without what is in brackets: dates are added there."""
    return "".join(filter(str.isalnum, re.sub(r"[(（][^()（）]{0,200}[)）]", "", text).casefold()))


def _holds(line: str, quote: str) -> bool:
    letters = "".join(filter(str.isalnum, quote.casefold()))
    return letters in "".join(filter(str.isalnum, line.casefold()))


class ScriptedModel:
    """A language model over HTTP that reads its answers from a script, for tests of agents with the real clients.

        with ScriptedModel(["Hello!", {"search_memories": {"query": "tea"}}]) as model:
            client = OpenAI(base_url=model.base_url, api_key="none")

    An answer is text, or an object of tool calls: names with arguments. It speaks OpenAI's Chat Completions and
    Responses, streamed and not, and Anthropic's Messages. `requests` are the bodies that came.
    """

    def __init__(self, script: Iterable[str | dict[str, Any]]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._script = list(script)
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                model._answer(self)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def base_url(self) -> str:
        """For OpenAI's clients; Anthropic's add `/v1` themselves: see `root_url`."""
        return f"{self.root_url}/v1"

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        self.requests.append(body)
        if len(self.requests) > len(self._script):
            _send(handler, 400, "application/json", json.dumps({"error": {"message": "the script is over"}}))
            return
        answer = self._script[len(self.requests) - 1]
        shape = next(shape for path, shape in _SHAPES.items() if handler.path.split("?")[0].endswith(path))
        reply, events = shape(answer)
        if body.get("stream"):
            lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
            _send(handler, 200, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]))
        else:
            _send(handler, 200, "application/json", json.dumps(reply))


Shaped = tuple[dict[str, Any], list[dict[str, Any]]]


def _send(handler: BaseHTTPRequestHandler, status: int, kind: str, body: str) -> None:
    data = body.encode()
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def _as_chat(answer: str | dict[str, Any]) -> Shaped:
    if isinstance(answer, str):
        message: dict[str, Any] = {"role": "assistant", "content": answer}
    else:
        calls = [
            {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for at, (name, given) in enumerate(answer.items())
        ]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    about = {"id": "scripted", "created": 0, "model": "scripted"}
    choice = {"index": 0, "message": message, "finish_reason": "stop" if isinstance(answer, str) else "tool_calls"}
    events = [
        {
            **about,
            "type": "chunk",
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}],
        }
        for piece in _pieces(answer)
    ]
    return {**about, "object": "chat.completion", "choices": [choice]}, events


def _as_response(answer: str | dict[str, Any]) -> Shaped:
    output: list[dict[str, Any]]
    if isinstance(answer, str):
        text = {"type": "output_text", "text": answer, "annotations": []}
        output = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}]
    else:
        calls = enumerate((name, json.dumps(given)) for name, given in answer.items())
        output = [
            {"type": "function_call", "id": f"f{at}", "call_id": f"call_{at}", "name": name, "arguments": given}
            for at, (name, given) in calls
        ]
    reply = {
        "id": "scripted",
        "object": "response",
        "created_at": 0,
        "model": "scripted",
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    place = {"item_id": "m", "output_index": 0, "content_index": 0, "logprobs": []}
    begun = {**reply, "status": "in_progress", "output": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    if isinstance(answer, str):
        [message], part = output, {"type": "output_text", "text": "", "annotations": []}
        item = {**message, "status": "in_progress", "content": []}
        events += [
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.content_part.added", "part": part, **place},
            *({"type": "response.output_text.delta", "delta": piece, **place} for piece in _pieces(answer)),
        ]
    events.append({"type": "response.completed", "response": reply})
    return reply, [{**event, "sequence_number": at} for at, event in enumerate(events)]


def _as_anthropic(answer: str | dict[str, Any]) -> Shaped:
    content: list[dict[str, Any]]
    if isinstance(answer, str):
        content = [{"type": "text", "text": answer}]
    else:
        content = [
            {"type": "tool_use", "id": f"toolu_{at}", "name": name, "input": given}
            for at, (name, given) in enumerate(answer.items())
        ]
    reply = {
        "id": "scripted",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": "end_turn" if isinstance(answer, str) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    return reply, []


_SHAPES = {"/chat/completions": _as_chat, "/responses": _as_response, "/messages": _as_anthropic}


def _pieces(answer: str | dict[str, Any]) -> list[str]:
    """Split a text into the pieces of a stream."""
    return [answer[at : at + 4] for at in range(0, len(answer), 4)] if isinstance(answer, str) else []


class Clock:
    """A clock for everything in Jiyi that moves only when told, so that a year can pass in a moment.

    with Clock(datetime(2026, 1, 1, tzinfo=UTC)) as clock:
        clock.now += timedelta(days=30)
    """

    def __init__(self, now: datetime) -> None:
        self.now = now

    def _tell(self) -> datetime:
        return self.now

    def __enter__(self) -> Self:
        self._set(models.utc_now, self._tell)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._set(self._tell, _TRUE_TIME)

    @staticmethod
    def _set(old: object, new: Callable[[], datetime]) -> None:
        """Modules take the function by its name; those that are imported later find the one that `models` has."""
        for name, module in list(sys.modules.items()):
            if name.startswith("jiyi.") and getattr(module, "utc_now", None) == old:
                module.utc_now = new  # type: ignore[attr-defined]


_TRUE_TIME = models.utc_now
