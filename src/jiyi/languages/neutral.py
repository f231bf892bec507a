"""Fallback for languages without a folder of their own.

Such a text is stored, divided, searched and rendered as it is; nothing in it is taken for English or Chinese grammar.
"""

from __future__ import annotations

from .base import word_set

# Function words of common languages in Latin letters, without those that are English words too: enough to tell that a
# sentence is not English.
FUNCTION_WORDS = word_set("""
    ich und der das ist nicht ein eine einen mit für auf dem von zu wir sie auch habe mein meine wie nach sind wohne
    je tu il nous vous les des est et une dans pour pas que qui avec sur mon mes suis le du aux cette sont chez où
    el los las una por para con mi yo del como pero muy estoy soy vivo tengo está dónde qué
    che di non per sono gli della mio nel anche
    não com meu minha eu você uma moro
    het een ik niet van voor mijn woon
    jag och är inte det att på bor
    jest nie się saya dan yang ben bir ve
""")
