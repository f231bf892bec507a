"""One-line summaries."""

SUMMARY_LENGTH = 120


def summarise(text: str) -> str:
    """Return the beginning of a text in one line."""
    line = " ".join(text[: SUMMARY_LENGTH * 4].split())
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 1].rstrip() + "…"
