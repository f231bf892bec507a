"""The figures as a picture: an SVG of bars with their intervals, a panel for each set."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from .measures import Figure
from .results import ALL, Group, RunResult, SetResult

SHOWN = {"recall@10": "#3569b0", "hit@3": "#d98032"}
LEFT, WIDTH, RIGHT = 230, 460, 110
BAR, GAP, HEAD, FOOT, LEGEND = 11, 14, 34, 30, 60
ROW = len(SHOWN) * BAR + GAP


def plot(result: RunResult) -> str:
    """A whole SVG file."""
    body: list[str] = list(_legend(result))
    top = LEGEND
    for one in result.sets:
        shown = [group for group in one.groups if SHOWN.keys() <= group.figures.keys()]
        body += _panel(one, shown, top)
        top += HEAD + ROW * len(shown) + FOOT
    width = LEFT + WIDTH + RIGHT
    size = f'width="{width}" height="{top}" viewBox="0 0 {width} {top}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif">',
            "<title>Evidence found, by category</title>",
            f'<rect width="{width}" height="{top}" fill="#fff"/>',
            *body,
            "</svg>\n",
        )
    )


def _legend(result: RunResult) -> Iterator[str]:
    yield _text(12, 22, f"Jiyi {result.jiyi} · {result.mode} · {result.embedder}", colour="#666")
    x = LEFT
    for name, colour in SHOWN.items():
        yield f'<rect x="{x}" y="36" width="{BAR}" height="{BAR}" fill="{colour}"/>'
        yield _text(x + BAR + 6, 46, f"{name}, %")
        x += 110
    yield _text(x, 46, "lines: 95 % of resampled means", colour="#666")


def _panel(one: SetResult, groups: list[Group], top: int) -> Iterator[str]:
    base = top + HEAD
    bottom = base + ROW * len(groups)
    yield _text(12, top + 20, f"{one.name} ({one.questions:,} questions)", bold=True)
    for percent in range(0, 101, 20):
        x = _x(percent / 100)
        yield f'<line x1="{x:.1f}" y1="{base}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>'
        yield _text(x, bottom + 16, str(percent), anchor="middle", colour="#666")
    for at, group in enumerate(groups):
        yield from _row(group, base + at * ROW + GAP // 2)


def _row(group: Group, top: int) -> Iterator[str]:
    name = f"{group.category}{' (apart)' if group.apart else ''}"
    middle = top + len(SHOWN) * BAR / 2
    yield _text(LEFT - 10, middle + 4, f"{name} · {group.questions}", anchor="end", bold=group.category == ALL)
    for at, (measure, colour) in enumerate(SHOWN.items()):
        yield from _bar(group.figures[measure], top + at * BAR, colour)


def _bar(figure: Figure, top: float, colour: str) -> Iterator[str]:
    middle = top + BAR / 2
    low, high = _x(figure.low), _x(figure.high)
    yield f'<rect x="{LEFT}" y="{top}" width="{_x(figure.value) - LEFT:.1f}" height="{BAR - 1}" fill="{colour}"/>'
    yield f'<line x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}" stroke="#222"/>'
    for x in (low, high):
        yield f'<line x1="{x:.1f}" y1="{middle - 3}" x2="{x:.1f}" y2="{middle + 3}" stroke="#222"/>'
    said = f"{100 * figure.value:.1f} ({100 * figure.low:.0f}–{100 * figure.high:.0f})"
    yield _text(LEFT + WIDTH + 8, middle + 4, said, size=10)


def _x(share: float) -> float:
    return LEFT + WIDTH * share


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", colour: str = "#222", bold: bool = False, size: int = 12
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}"{weight}>'
        f"{_plain(text)}</text>"
    )


def _plain(text: str) -> str:
    """Names come from foreign files: what XML cannot carry is replaced, what it would obey is escaped."""
    return escape("".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text))
