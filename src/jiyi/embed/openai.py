"""Embedder for servers with OpenAI's `/embeddings`."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import EmbeddingError, MissingExtra, SettingsError
from ..http_client import limit_response, without_password
from ..settings import Settings
from . import Vectors

TIMEOUT_S = 60.0  # of one try without data; the client makes three
TOTAL_TIMEOUT_S = 120.0  # of all tries: a server can send slowly
CONNECT_TIMEOUT_S = 10.0
MAX_BYTES = 64_000_000  # of a reply


class OpenAIEmbedder:
    """Embeds through an OpenAI-compatible server."""

    def __init__(self, model: str, settings: Settings) -> None:
        try:
            import openai
        except ImportError as error:
            raise MissingExtra("llm", "openai") from error
        api_key = settings.embedding.api_key or settings.llm.api_key
        if api_key is None:
            raise SettingsError(
                "embedder openai: set JIYI_EMBEDDING__API_KEY (any text if it needs none), for jiyi's commands also"
                " EMBEDDING_API_KEY or LLM_API_KEY"
            )
        self._model = model
        self._batch_size = settings.embedding.batch_size
        dimension = settings.embedding.dimension
        self._options: dict[str, Any] = {"dimensions": dimension} if dimension else {}
        self.id = f"openai:{model}" + (f"@{dimension}" if dimension else "")
        self._dimension: int | None = None  # of its earlier vectors
        self._errors = openai.OpenAIError
        self._client = openai.AsyncOpenAI(
            api_key=api_key.get_secret_value(),
            base_url=settings.embedding.base_url or settings.llm.base_url,
            default_headers={"Accept-Encoding": "identity"},
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=openai.Timeout(TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
                follow_redirects=False,
                event_hooks={"response": [limit_response(MAX_BYTES, EmbeddingError)]},
            ),
        )
        self.address = without_password(str(self._client.base_url)).rstrip("/")

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        parts = [texts[at : at + self._batch_size] for at in range(0, len(texts), self._batch_size)]
        rows = [row for part in parts for row in await self._embed(part)]
        try:
            with np.errstate(over="ignore"):  # infinite values are reported later
                return self._same_dimension(np.asarray(rows, dtype=np.float32))
        except (TypeError, ValueError) as error:
            raise EmbeddingError(f"{self.id} did not return rows of numbers: {error}") from error

    def _same_dimension(self, vectors: Vectors) -> Vectors:
        """Raise if the dimension differs from earlier replies: another model answers."""
        length = vectors.shape[-1] if vectors.ndim == 2 else 0
        if length and self._dimension not in (None, length):
            raise EmbeddingError(
                f"{self.id} returned vectors of dimension {length}, and of {self._dimension} before: if the model was "
                "changed on purpose, restart the process"
            )
        if length and np.all(np.isfinite(vectors)):
            self._dimension = length
        return vectors

    async def embed_query(self, text: str) -> Vectors:
        vector: Vectors = (await self.embed_documents([text]))[0]
        return vector

    async def _embed(self, texts: Sequence[str]) -> list[Any]:
        """Return the rows of the reply in the order of the texts; the reply may have any shape."""
        try:
            async with asyncio.timeout(TOTAL_TIMEOUT_S):
                reply = await self._client.embeddings.create(
                    model=self._model, input=list(texts), encoding_format="float", **self._options
                )
            by_index = {row.index: row.embedding for row in reply.data}
        except TimeoutError:
            raise EmbeddingError(f"{self.id} did not answer within {TOTAL_TIMEOUT_S:g} s") from None
        except self._errors as error:
            cause = error.__cause__ if isinstance(error.__cause__, EmbeddingError) else error
            raise EmbeddingError(f"{self.id}: {cause}") from error
        except (AttributeError, TypeError, ValueError) as error:
            raise EmbeddingError(f"{self.id} did not return embeddings: {error}") from error
        if by_index.keys() != set(range(len(texts))):
            raise EmbeddingError(f"{self.id} returned {len(by_index)} embeddings for {len(texts)} texts")
        return [by_index[at] for at in range(len(texts))]
