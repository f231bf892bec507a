"""The recalling agent as a member of an AutoGen team."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken, Component, ComponentModel
from autogen_core.models import ChatCompletionClient
from pydantic import BaseModel

from ... import agents
from ...memory import Memory
from .binding import Binding, Source, bound_to, source_of, to_write_down
from .chat import chat_of


class MemRecallAgentConfig(BaseModel):
    name: str
    description: str
    binding: Binding
    limit: int
    min_relevance_score: float | None = None
    model_client: ComponentModel | None = None


class MemRecallAgent(BaseChatAgent, Component[MemRecallAgentConfig]):
    """Answers a need with what the memory has for it, and says what it does not have."""

    component_config_schema = MemRecallAgentConfig
    component_provider_override = "jiyi.agents.autogen.MemRecallAgent"

    def __init__(
        self,
        name: str,
        memory: Memory | Source | str | None = None,
        *,
        user_id: str,
        agent_id: str | None = None,
        group_id: str | None = None,
        private: bool = False,
        model_client: ChatCompletionClient | None = None,
        limit: int = 8,
        min_relevance_score: float | None = None,
        description: str = "Recalls what is known about the user: plans searches in the memory and merges the results.",
    ) -> None:
        super().__init__(name, description)
        self._source = source_of(memory)
        self._binding = bound_to(self._source, user_id=user_id, agent_id=agent_id, group_id=group_id, private=private)
        self._model_client = model_client
        self._limit = limit
        self._at_least = min_relevance_score

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        """Recall for the last message."""
        binding = self._binding
        recalling = agents.MemRecallAgent(
            await self._source.get(),
            user_id=binding.user_id,
            agent_id=binding.agent_id if binding.private else None,
            group_id=binding.group_id if binding.private else None,
            chat=chat_of(self._model_client) if self._model_client else None,
        )
        need = messages[-1].to_model_text() if messages else ""
        found = await recalling.recall(need, limit=self._limit, min_relevance_score=self._at_least)
        return Response(chat_message=TextMessage(content=found.text(), source=self.name))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """There is nothing to reset: each need is answered by itself."""

    async def on_pause(self, cancellation_token: CancellationToken) -> None:
        """Searches are short."""

    async def on_resume(self, cancellation_token: CancellationToken) -> None:
        """Searches are short."""

    async def close(self) -> None:
        """Close the memory, if it was opened here."""
        await self._source.close()

    def _to_config(self) -> MemRecallAgentConfig:
        return MemRecallAgentConfig(
            name=self.name,
            description=self.description,
            binding=to_write_down(self._binding),
            limit=self._limit,
            min_relevance_score=self._at_least,
            model_client=self._model_client.dump_component() if self._model_client else None,
        )

    @classmethod
    def _from_config(cls, config: MemRecallAgentConfig) -> Self:
        client = config.model_client
        return cls(
            config.name,
            source_of(config.binding.where),
            **config.binding.model_dump(include={"user_id", "agent_id", "group_id", "private"}),
            model_client=ChatCompletionClient.load_component(client) if client else None,
            limit=config.limit,
            min_relevance_score=config.min_relevance_score,
            description=config.description,
        )
