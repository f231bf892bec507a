"""Languages without a folder of their own are stored, divided, searched and rendered as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from jiyi import Memory
from jiyi.languages import language, sentences
from jiyi.languages.terms import tokens
from jiyi.languages.words import prompt_language
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder

# A sentence, a query that shares a word with it, and another sentence that does not.
SENTENCES = {
    "de": ("Ich wohne im Wedding.", "Wedding", "Mein Hund heißt Max."),
    "fr": ("J'habite à Montréal depuis l'été.", "Montréal", "Mon chat s'appelle Félix."),
    "es": ("Vivo en Córdoba con mi abuela.", "abuela Córdoba", "Trabajo como enfermera."),
    "ja": ("私は東京に住んでいます。", "東京", "猫の名前はタマです。"),
    "ru": ("Я живу в Новосибирске.", "Новосибирске", "Мою собаку зовут Бим."),
    "ar": ("أنا أعيش في القاهرة.", "القاهرة", "اسم قطتي مشمش."),
}


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_is_neither_english_nor_chinese(code: str) -> None:
    said, query, _ = SENTENCES[code]
    assert language(said) == "other"
    assert prompt_language(said) == "en"
    assert sentences(said) == [(0, len(said))]
    assert set(tokens(query)) & set(tokens(said))


@pytest.mark.parametrize("code", SENTENCES)
async def test_stored_and_found_unharmed(code: str, tmp_path: Path) -> None:
    said, query, other = SENTENCES[code]
    async with Memory.open(tmp_path / "m.db", settings=load_settings(), embedder=WordEmbedder()) as memory:
        await memory.add([{"role": "user", "content": said}], user_id="u", session_id="a")
        await memory.add([{"role": "user", "content": other}], user_id="u", session_id="b")
        found = await memory.search(query, user_id="u")
        assert found.hits[0].content_preview == said
        assert said in await memory.context(query, user_id="u")
