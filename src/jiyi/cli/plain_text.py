"""Text for a terminal. Memories are untrusted: controls and marks of direction are replaced, except tab and newline."""

_DIRECTIONS = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in (*range(0x20), *range(0x7F, 0xA0), *_DIRECTIONS)
    if chr(code) not in "\t\n"
}


def plain(text: str) -> str:
    return text.translate(_CONTROLS)
