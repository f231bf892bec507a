"""Commands about synonyms: synonyms add, import, list, remove."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import options as opt
from .session import call, counted, err, general, options, plain, show

app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})

SOURCE = "Groups of words, or a table; - reads stdin."
Source = Annotated[Path, typer.Argument(metavar="FILE", help=SOURCE, allow_dash=True)]
Word = Annotated[str, typer.Argument(metavar="WORD", help="A word.")]
Synonym = Annotated[str, typer.Argument(metavar="SYNONYM", help="A word that means the same.")]
SIMILAR = "How much a search for one counts the other."
Similarity = Annotated[float, typer.Option("--similarity", metavar="0..1", help=SIMILAR)]
SIMILARITY = 0.8
OTHER = "Remove only this pair. Default: all pairs of WORD."
Other = Annotated[str | None, typer.Argument(metavar="SYNONYM", help=OTHER, show_default=False)]
Shared = Annotated[bool, typer.Option("--shared", help="For all users instead of one.", rich_help_panel="General")]


@app.callback()
def synonyms() -> None:
    """Manage synonyms, by which a search for one word finds the other.

    Examples:
    $ jiyi synonyms add k8s kubernetes
    $ jiyi synonyms import 词表.csv --shared
    $ jiyi synonyms list --user mei
    $ jiyi synonyms remove k8s kubernetes

    A line of the file is a group such as: 咖啡 | coffee
    or a row of a table: keyword,synonym,similarity
    """


@app.command("add")
@general()
def add(word: Word, synonym: Synonym, similarity: Similarity = SIMILARITY, shared: Shared = False) -> None:
    """Add a pair of synonyms, or change how similar they are.

    Examples:
    $ jiyi synonyms add k8s kubernetes
    $ jiyi synonyms add 老王 王总 --similarity 0.9 --shared
    """
    pair = (word, synonym, similarity)
    added = call(lambda memory, user_id: memory.synonyms.add([pair], user_id=None if shared else user_id), create=True)
    show({"added": added}, lambda _: "1 pair added" if added else "known already")


@app.command("import")
@general()
def import_(file: Source, shared: Shared = False) -> None:
    """Import synonyms from a file. Known pairs are not stored twice.

    Examples:
    $ jiyi synonyms import words.txt
    $ jiyi synonyms import 词表.csv --shared
    """
    from ..synonyms import parse_synonyms

    is_stdin = str(file) == "-"
    name = "stdin" if is_stdin else str(file)
    data = sys.stdin.buffer.read() if is_stdin else opt.read_file("FILE", file)
    pairs = parse_synonyms(opt.decode(name, data), name=name)
    added = call(lambda memory, user_id: memory.synonyms.add(pairs, user_id=None if shared else user_id), create=True)
    known = f", {len(pairs) - added:,} known already" if added < len(pairs) else ""
    show({"pairs": len(pairs), "added": added}, lambda _: f"{counted(added, 'pair', 'pairs')} added{known}")


@app.command("list")
@general()
def list_(shared: Shared = False) -> None:
    """List the user's synonyms and the shared ones, without the built-in ones.

    Examples:
    $ jiyi synonyms list --shared
    $ jiyi synonyms list --user 林梅 --json
    """
    found = call(lambda memory, user_id: memory.synonyms.list(user_id=None if shared else user_id), reads=True)
    if not found and not options().as_json:
        err().print("no synonyms except the built-in ones")
        return
    from .render import columns

    table = columns("scope", "similarity", "word", "synonym")
    for pair in found:
        scope = "shared" if pair.shared else "user"
        table.add_row(scope, f"{pair.similarity:.2f}", plain(pair.keyword), plain(pair.synonym))
    show(list(found), lambda _: table)


@app.command("remove")
@general()
def remove(word: Word, synonym: Other = None, shared: Shared = False) -> None:
    """Remove the synonyms of a word, or one pair.

    Examples:
    $ jiyi synonyms remove k8s
    $ jiyi synonyms remove 咖啡 coffee --shared
    """
    removed = call(lambda memory, user_id: memory.synonyms.remove(word, synonym, user_id=None if shared else user_id))
    show({"removed": removed}, lambda _: f"{counted(removed, 'pair', 'pairs')} removed")
