"""The commands about words that mean the same: synonyms import, list, remove."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidInput
from . import options as opt
from .output import counted, err, plain, show
from .session import call

app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})

Source = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="Groups of words, or a table; - reads stdin.", allow_dash=True),
]
Word = Annotated[str, typer.Argument(metavar="WORD", help="A word.")]
Other = Annotated[
    str | None, typer.Argument(metavar="SYNONYM", help="Only its pair with this one. Default: all.", show_default=False)
]
Shared = Annotated[bool, typer.Option("--shared", help="For all users, in place of one.", rich_help_panel="General")]


@app.callback()
def synonyms() -> None:
    """Teach it words that mean the same, so that one finds the other.

    Examples:
    $ jiyi synonyms import words.txt
    $ jiyi synonyms import 词表.csv --shared
    $ jiyi synonyms list --user mei
    $ jiyi synonyms remove k8s kubernetes

    A line of the file is a group such as: 咖啡 | coffee
    or a row of a table: keyword,synonym,similarity
    """


@app.command("import")
def import_(
    file: Source,
    shared: Shared = False,
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Take in a file of synonyms. What is known already is not stored twice.

    Examples:
    $ jiyi synonyms import words.txt
    $ jiyi synonyms import 词表.csv --shared
    """
    from ..synonyms import parse_synonyms

    pairs = parse_synonyms(_read(file), name="stdin" if str(file) == "-" else str(file))
    added = call(
        lambda memory, user_id: memory.synonyms.add(pairs, user_id=None if shared else user_id), store=store, user=user
    )
    known = f", {len(pairs) - added:,} known already" if added < len(pairs) else ""
    show({"pairs": len(pairs), "added": added}, lambda _: f"{counted(added, 'pair', 'pairs')} added{known}", as_json)


@app.command("list")
def list_(
    shared: Shared = False,
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """List the user's synonyms and the shared ones. The built-in ones are not listed.

    Examples:
    $ jiyi synonyms list --shared
    $ jiyi synonyms list --user 林梅 --json
    """
    found = call(
        lambda memory, user_id: memory.synonyms.list(user_id=None if shared else user_id), store=store, user=user
    )
    if not found and not as_json:
        err().print("no synonyms were brought yet; the built-in ones are always there")
        return
    from .render import columns

    table = columns("whose", "similarity", "word", "synonym")
    for pair in found:
        whose = "shared" if pair.shared else "own"
        table.add_row(whose, f"{pair.similarity:.2f}", plain(pair.keyword), plain(pair.synonym))
    show(list(found), lambda _: table, as_json)


@app.command("remove")
def remove(
    word: Word,
    synonym: Other = None,
    shared: Shared = False,
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Remove the synonyms of a word, or one pair.

    Examples:
    $ jiyi synonyms remove k8s
    $ jiyi synonyms remove 咖啡 coffee --shared
    """
    removed = call(
        lambda memory, user_id: memory.synonyms.remove(word, synonym, user_id=None if shared else user_id),
        store=store,
        user=user,
    )
    show({"removed": removed}, lambda _: f"{counted(removed, 'pair', 'pairs')} removed", as_json)


def _read(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise InvalidInput("FILE", f"{file} cannot be read: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(str(file), f"is not UTF-8 (byte {error.start:,}): convert it first") from None
    if not text.strip():
        raise InvalidInput(str(file), "is empty")
    return text
