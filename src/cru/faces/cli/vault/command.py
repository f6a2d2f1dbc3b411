"""`cru vault`: makes a folder of notes known, and answers from it (docs/vault.md)."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.api import jq
from cru.core.compose import Start, load_settings
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import say, show
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import context_name, open_home, start_of
from cru.faces.cli.terminal.progress import ProgressLine
from cru.faces.cli.vault import lines
from cru.faces.cli.vault.graph import write_graph
from cru.faces.cli.vault.init import init_vault
from cru.faces.cli.vault.meaning import embed_all, embed_for_search, search_mode, suggest_install
from cru.features.vault import VaultSettings, VaultTable, located, with_environment
from cru.features.vault.index.index import Update
from cru.features.vault.index.records import NoteRecord
from cru.features.vault.plain import plain_hit, plain_note, plain_rows
from cru.features.vault.search.modes import SearchMode
from cru.features.vault.vault import Vault, find_vault

HELP = """\
cru vault init FOLDER        use a folder of Markdown as the vault (made if it is missing), and index it
cru vault [status]           where it is, how much is in it, what cannot be read
cru vault search TEXT…       the best notes; words, "a phrase", start*, -not, a OR b, #tag, path:folder/, key:value (-n 20)
                             --mode text|semantic|hybrid: by words, by meaning, by both (pip install 'cru[semantic]')
cru vault read NOTE          the text of a note, by its title or path
cru vault links NOTE         what it links to, what links to it, links to nothing
cru vault neighbors NOTE     what is at most so many links away (-d 1)
cru vault path NOTE NOTE     the shortest way from one to the other
cru vault orphans            notes without links
cru vault dangling           links to nothing
cru vault tags               every tag, and how many notes have it
cru vault query QUERY        outlinks("Title") | ->[] | .[].title · SELECT inlinks FROM 'Title' · MATCH (a {title: 'T'})-[]->(b) RETURN b
cru vault rename OLD NEW     another path; the links to it follow
cru vault undo               take the last rename back
cru vault index              bring the index up to date (--rebuild: make it anew), for search by meaning, too
cru vault graph              a page to look around in, written as a file (-o FILE, --open, --svg)
--json gives results for programs. What a query needs: docs/vault.md
"""


class VaultRequest(Struct, frozen=True):
    """A verb with its arguments, and the vault, brought up to date."""

    args: CommandArguments
    words: list[str]
    vault: Vault
    home: Path

    def note(self, name: str) -> NoteRecord:
        return self.vault.find(name)

    def answer(self, value: object, text: Callable[[], object]) -> int:
        """For a program, or for a person: `text` shows it."""
        if self.args.has("--json"):
            show(msgspec.json.encode(value).decode())
        else:
            text()
        return 0


class Verb(Struct, frozen=True):
    """What may follow the verb: the names of its words, and the options that it alone has. many: the last word takes the rest."""

    run: Callable[[VaultRequest], int]
    words: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    many: bool = False


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments(
        "vault", words, help=HELP, values=("-n", "-d", "-o", "--mode"), switches=("--json", "--open", "--svg", "--rebuild"),
        verbs=("init", *VERBS), most=1000,
    )  # fmt: skip
    if args.show_help():
        return 0
    name, *rest = args.words or ["status"]
    start = start_of(parsed, context_name(parsed, open_home(parsed)))
    if name == "init":
        return _init(start, args, rest)
    verb = VERBS[name]
    _check(args, name, verb, rest)
    vault = find_vault(_settings(start), start.home)
    try:
        if name != "index":
            _update(vault)
        return verb.run(
            VaultRequest(
                args,
                [*rest[: len(verb.words) - 1], " ".join(rest[len(verb.words) - 1 :])] if verb.many else rest,
                vault,
                start.home,
            )
        )
    finally:
        vault.close()


def _check(args: CommandArguments, name: str, verb: Verb, words: list[str]) -> None:
    """Raises UsageProblem if the words and options are not those of the verb."""
    form = " ".join(("cru vault", name, *verb.words))
    if len(words) < len(verb.words):
        missing = verb.words[len(words)]
        raise UsageProblem(f"`cru vault {name}` needs {missing}", form)
    if len(words) > len(verb.words) and not verb.many:
        raise UsageProblem(
            f"`cru vault {name}` does not take {words[len(verb.words)]}", f"{form}; a name with spaces is quoted"
        )
    for option in ("-n", "-d", "-o", "--mode", "--open", "--svg", "--rebuild"):
        if args.has(option) and option not in verb.options:
            raise UsageProblem(f"`cru vault {name}` does not take {option}", f"{form} {' '.join(verb.options)}".strip())


def _count(args: CommandArguments, option: str, default: int, most: int) -> int:
    """A whole number from 1. Raises UsageProblem."""
    number = args.number(option, default)
    if not 1 <= number <= most:
        raise UsageProblem(f"{option} needs a number from 1 to {most:,}, not {number}")
    return number


def _update(vault: Vault, *, anew: bool = False) -> Update:
    """Bring the index up to date; a terminal sees how far it is."""
    if not sys.stderr.isatty():
        return vault.rebuild() if anew else vault.update()
    line = ProgressLine()

    def progress(done: int, of: int) -> None:
        if of > 500:
            line.show(f"reading notes: {done:,} of {of:,}")

    try:
        return vault.rebuild(progress) if anew else vault.update(progress)
    finally:
        line.clear()


def _settings(start: Start) -> VaultSettings:
    """Raises ConfigError."""
    chosen = load_settings(start)[0].with_defaults((VaultTable,)).of(VaultTable).vault
    return located(with_environment(chosen, start.env), start.root)


def _init(start: Start, args: CommandArguments, words: list[str]) -> int:
    _check(args, "init", Verb(_status, ("FOLDER",)), words)
    vault, before = init_vault(start.home, words[0], _settings(start))
    try:
        _update(vault)
        request = VaultRequest(args, [], vault, start.home)
        if before and not args.has("--json"):
            show(f"before, the vault was {before}")
        return _status(request)
    finally:
        vault.close()


def _status(request: VaultRequest) -> int:
    counts = request.vault.counts()
    value = {"path": str(request.vault.root), "name": request.vault.name, **msgspec.to_builtins(counts)}
    value["orphans"] = len(request.vault.orphans())
    value["search_mode"], value["embedded"] = request.vault.default_mode(), request.vault.coverage().embedded

    def show_all() -> None:
        lines.show_status(request.vault, counts, value["orphans"])
        if request.vault.default_mode() is not SearchMode.TEXT:
            rest = "" if value["embedded"] >= counts.notes else "; a search or `cru vault index` adds the others"
            show(f"{value['embedded']:8,} notes are known by their meaning{rest}")

    return request.answer(value, show_all)


def _search(request: VaultRequest) -> int:
    limit, mode = _count(request.args, "-n", 20, 1000), search_mode(request.args)
    embed_for_search(request.vault, mode)
    result = request.vault.search_notes(request.words[0], limit, mode)
    if not result.hits:
        say("no note has that")
    if result.notice:
        say(result.notice)
    suggest_install(request.vault, mode)
    return request.answer([plain_hit(hit) for hit in result.hits], lambda: lines.show_hits(result.hits))


def _read(request: VaultRequest) -> int:
    note = request.note(request.words[0])
    text = request.vault.read(note.path)
    value = {**plain_note(request.vault, note), "content": text}
    return request.answer(value, lambda: show(text.removesuffix("\n")))


def _links(request: VaultRequest) -> int:
    note = request.note(request.words[0])
    out, back = request.vault.outlinks(note.id), request.vault.backlinks(note.id)
    dangling = [link for link in request.vault.dangling() if link.path == note.path]
    value = {
        "path": note.path,
        "out": [each.path for each in out],
        "back": [each.path for each in back],
        "dangling": [{"line": link.line, "target": link.target} for link in dangling],
    }
    return request.answer(value, lambda: lines.show_links(note, out, back, dangling))


def _neighbors(request: VaultRequest) -> int:
    note = request.note(request.words[0])
    return _notes(request, request.vault.neighbors(note.id, _count(request.args, "-d", 1, 20)), "it has no links")


def _path(request: VaultRequest) -> int:
    start, end = request.note(request.words[0]), request.note(request.words[1])
    return _notes(request, request.vault.shortest_path(start.id, end.id), "no way leads there over links")


def _orphans(request: VaultRequest) -> int:
    return _notes(request, request.vault.orphans(), "every note has links")


def _notes(request: VaultRequest, notes: list[NoteRecord], nothing: str) -> int:
    if not notes:
        say(nothing)
    return request.answer([{"path": note.path, "title": note.title} for note in notes], lambda: lines.show_notes(notes))


def _dangling(request: VaultRequest) -> int:
    links = request.vault.dangling()
    if not links:
        say("every link leads somewhere")
    return request.answer(
        msgspec.to_builtins(links),
        lambda: lines.show_lines(f"{link.path}:{link.line}  {link.target}" for link in links),
    )


def _tags(request: VaultRequest) -> int:
    tags = {tag: len(notes) for tag, notes in request.vault.tags().items()}
    return request.answer(tags, lambda: lines.show_lines(f"{count:6,}  #{tag}" for tag, count in tags.items()))


def _query(request: VaultRequest) -> int:
    rows, filters = request.vault.query(request.words[0])
    results = plain_rows(request.vault, rows)
    if filters:
        results = jq.query("cru vault query", msgspec.json.encode(results), filters)
    return request.answer(results, lambda: lines.show_rows(results))


def _rename(request: VaultRequest) -> int:
    record = request.vault.rename(request.note(request.words[0]).path, request.words[1])
    return request.answer(msgspec.to_builtins(record), lambda: lines.show_rename(record))


def _undo(request: VaultRequest) -> int:
    undone = request.vault.undo_rename()
    if undone is None:
        say("there is no rename to take back")
    return request.answer(msgspec.to_builtins(undone), lambda: lines.show_undone(undone))


def _index(request: VaultRequest) -> int:
    update = _update(request.vault, anew=request.args.has("--rebuild"))
    state = embed_all(request.vault)
    value = lines.count_changes(update)
    if state is not None:
        value["embedded"] = state.embedded
    return request.answer(value, lambda: lines.show_update(value))


def _graph(request: VaultRequest) -> int:
    args = request.args
    is_svg = args.has("--svg")
    default = request.home / "vaults" / f"graph.{'svg' if is_svg else 'html'}"
    file = Path(args.value("-o", str(default))).absolute()
    drawn = write_graph(request.vault, file, is_svg=is_svg)
    if args.has("--open") and not webbrowser.open(file.as_uri()):
        say(f"no program was found that opens it: {file}")
    return request.answer({"file": str(file), **drawn}, lambda: lines.show_graph(file, drawn))


NOTE = ("NOTE",)
VERBS: dict[str, Verb] = {
    "status": Verb(_status),
    "search": Verb(_search, ("TEXT",), ("-n", "--mode"), many=True),
    "read": Verb(_read, NOTE),
    "links": Verb(_links, NOTE),
    "neighbors": Verb(_neighbors, NOTE, ("-d",)),
    "path": Verb(_path, ("NOTE", "NOTE")),
    "orphans": Verb(_orphans),
    "dangling": Verb(_dangling),
    "tags": Verb(_tags),
    "query": Verb(_query, ("QUERY",), many=True),
    "rename": Verb(_rename, ("NOTE", "NEW")),
    "undo": Verb(_undo),
    "index": Verb(_index, (), ("--rebuild",)),
    "graph": Verb(_graph, (), ("-o", "--open", "--svg")),
}
"""Every verb but `init`, which makes the vault."""
