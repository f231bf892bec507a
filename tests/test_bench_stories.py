"""`bench.plain_stories` and `bench.indirect_stories`: stories that models are trained on."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from bench import indirect_stories, plain_stories
from bench.indirect_stories import Request, material
from bench.reader import stories as data
from bench.reader.lists import Mix, Sampler

MAKERS = {"plain": plain_stories.stories, "indirect": indirect_stories.stories}
DIGEST = """
import hashlib, json
from bench.{source}_stories import stories
print(hashlib.sha256(json.dumps(stories(20)).encode()).hexdigest())
"""


@pytest.mark.parametrize("source", MAKERS)
def test_stories_depend_on_the_seed_only(source: str) -> None:
    def digest(hash_seed: str) -> str:
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", DIGEST.format(source=source)]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    assert digest("1") == digest("2")
    assert MAKERS[source](3, 1) != MAKERS[source](3, 2)


@pytest.mark.parametrize(("source", "make"), MAKERS.items())
def test_positives_are_statements_and_nothing_else(source: str, make: Callable[[int], list[Any]]) -> None:
    for story in data.made(make(30), source):
        assert story["source"] == source
        for question in story["questions"]:
            positive = set(question["positive"])
            assert bool(positive) == question["answerable"] == (question["kind"] != "absent")
            assert positive.isdisjoint(question["stale"]) and positive.isdisjoint(question["ignored"])
            assert {story["messages"][at]["speaker"] for at in positive} <= {story["user"]}
            assert all(story["messages"][at]["kind"] not in ("smalltalk", "request") for at in positive)


def test_a_fact_with_a_topic_of_the_request_is_no_negative() -> None:
    topics = {fact.text: fact.topics for fact in material().facts}
    requests = {request.text: request.topics for request in all_requests()}
    for story in data.made(indirect_stories.stories(30), "indirect"):
        stated = [next((topics[text] for text in topics if text in m["text"]), None) for m in story["messages"]]
        for question in story["questions"]:
            known = {*question["positive"], *question["ignored"]}
            others = [found for at, found in enumerate(stated) if found and at not in known]
            assert all(requests[question["text"]].isdisjoint(found) for found in others)


def test_statements_of_chats_are_no_negatives_of_a_request() -> None:
    """A stranger's "I can't eat cheese" would bear on "Book a table" as much as the user's."""
    stories = [story for story in data.made(indirect_stories.stories(10), "indirect") if story["language"] == "en"]
    said = [("fact", "zebra"), ("smalltalk", "hello")]
    messages = [{"speaker": "Zoe", "text": text, "previous": -1, "at": 1.0, "kind": kind} for kind, text in said]
    chat = stories[0] | {"source": "everyday", "user": "Zoe", "messages": messages, "questions": []}
    mix = Mix(shares=(("indirect", 1.0),), renamed=0, unmarked=0)
    sampler = Sampler([*stories, chat], [], [], mix, random.Random(0))
    seen = " ".join(one.pair.second for _ in range(20) for one in sampler.answers())
    assert "hello" in seen and "zebra" not in seen


def test_a_story_has_no_two_facts_that_contradict_each_other() -> None:
    groups = {fact.text: fact.one_of for fact in material().facts if fact.one_of}
    for story in data.made(indirect_stories.stories(30), "indirect"):
        found = [groups[text] for text in groups for message in story["messages"] if text in message["text"]]
        assert len(found) == len(set(found))


def test_facts_and_requests_are_unique_and_their_topics_known() -> None:
    facts, requests = material().facts, all_requests()
    assert [text for text, count in Counter(one.text for one in [*facts, *requests]).items() if count > 1] == []
    assert [fact.text for fact in facts if len(fact.requests) < 3] == []
    known = {topic for fact in facts for topic in fact.topics}
    assert {topic for request in requests for topic in request.topics} <= known
    assert [fact.text for fact in facts if any(fact.text in other.text for other in facts if other is not fact)] == []


def all_requests() -> list[Request]:
    found = material()
    own = [request for fact in found.facts for request in (*fact.requests, *fact.across)]
    common = [request for one in found.common for request in one.requests]
    return own + common + [request for requests in found.absent.values() for request in requests]
