"""AutoGen's model client as a plain chat function."""

from __future__ import annotations

from autogen_core.models import AssistantMessage, ChatCompletionClient, LLMMessage, SystemMessage, UserMessage

from ..chat import Chat, Turn


def chat_of(client: ChatCompletionClient) -> Chat:
    async def chat(messages: list[Turn]) -> str:
        reply = await client.create([_message(message) for message in messages])
        return reply.content if isinstance(reply.content, str) else ""

    return chat


def _message(turn: Turn) -> LLMMessage:
    if turn["role"] == "system":
        return SystemMessage(content=turn["content"])
    if turn["role"] == "assistant":
        return AssistantMessage(content=turn["content"], source="assistant")
    return UserMessage(content=turn["content"], source="user")
