"""`cru history`: how files were before cru changed them (docs/undo.md)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from cru.core.compose.start import Start
from cru.core.conversations.entries import format_time
from cru.core.revisions import NoRevision
from cru.core.revisions.diff import diff_summary
from cru.core.revisions.records import ChangedBy, ChangeOrigin, FileChange, FileKind, PathState
from cru.core.revisions.restore import FileSummary, Step, StepKind, apply
from cru.core.revisions.store import RevisionStore, find_stores, project_folder
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, show
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import context_name, open_home, start_of

HELP = """\
cru history                    the files of this project that cru has changed, the newest first
cru history FILE               its revisions: 1 is how it was before the newest change
cru history FILE N             the content of revision N
cru history FILE N --diff      what is different in it now (N is 1 if it is left out)
cru history FILE N --restore   bring it back; how the file is now becomes the newest revision
--json gives the lists for programs. How long revisions are kept: `[undo]` in docs/configuration.md
"""


class Revision(Struct, frozen=True):
    """How a file was before a change, and where that is kept."""

    number: int
    change: FileChange
    store: RevisionStore

    @property
    def state(self) -> PathState:
        return self.change.before

    def about(self) -> str:
        match self.state.kind:
            case FileKind.MISSING:
                return "it did not exist"
            case FileKind.FILE:
                kept = "" if self.store.has(self.state) else ", not kept"
                return f"{self.state.size:,} bytes{kept}"
            case _:
                return str(self.state.kind.value)

    def plain(self) -> dict[str, object]:
        """For programs."""
        change = self.change
        return {
            "number": self.number, "file": change.path, "time": change.time, "kept": self.store.has(self.state),
            **msgspec.to_builtins(change.before), "changed": msgspec.to_builtins(change.origin),
        }  # fmt: skip


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it, and RevisionError."""
    switches = ("--json", "--diff", "--restore")
    args = CommandArguments("history", words, help=HELP, switches=switches, most=2)
    if args.show_help():
        return 0
    start = start_of(parsed, context_name(parsed, open_home(parsed)))
    if not args.words:
        return _list_files(start, args)
    file = os.path.realpath(args.words[0])
    revisions = list(_revisions(start, file))
    number = _number(args.words[1]) if len(args.words) > 1 else 0
    if not number and not args.has("--diff") and not args.has("--restore"):
        return _list(revisions, args)
    revision = _find(revisions, number or 1, file)
    if args.has("--restore"):
        return _restore(revision)
    if args.has("--diff"):
        show(diff_summary(revision.store, _now(revision), args.words[0]) or "nothing is different")
        return 0
    sys.stdout.flush()
    sys.stdout.buffer.write(b"" if revision.state.kind is FileKind.MISSING else revision.store.content(revision.state))
    return 0


def _number(word: str) -> int:
    if not word.isascii() or not word.isdigit() or int(word) < 1:
        raise UsageProblem(f"a revision is a number from 1, not {word}", "cru history FILE lists them")
    return int(word)


def _revisions(start: Start, file: str) -> Iterator[Revision]:
    """Those of all projects, the newest first. Raises NoRevision if there is none."""
    changes = [
        (change, store) for store in find_stores(start.home) for change in store.changes() if change.file == file
    ]
    if not changes:
        raise NoRevision(
            f"cru has not changed {file}, or keeps none of it any more", "`cru history` lists what there is"
        )
    changes.sort(key=lambda pair: pair[0].time, reverse=True)
    for number, (change, store) in enumerate(changes, 1):
        yield Revision(number, change, store)


def _find(revisions: list[Revision], number: int, file: str) -> Revision:
    if number > len(revisions):
        raise NoRevision(f"{file} has {len(revisions)} revisions, not {number}", "`cru history FILE` lists them")
    return revisions[number - 1]


def _list(revisions: list[Revision], args: CommandArguments) -> int:
    if args.has("--json"):
        show(msgspec.json.encode([revision.plain() for revision in revisions]).decode())
        return 0
    for revision in revisions:
        origin = revision.change.origin
        when = format_time(int(revision.change.time))
        show(f"{revision.number:>3}  {when}  {revision.about():<18}  before {_who(origin)}")
    return 0


def _who(origin: ChangeOrigin) -> str:
    agent = f", sub-agent {origin.agent}" if origin.agent else ""
    where = f" in {origin.context}{agent}" if origin.context else ""
    return one_line(f"{'a command' if origin.by is ChangedBy.COMMAND else origin.tool or origin.by.value}{where}")


def _list_files(start: Start, args: CommandArguments) -> int:
    store = RevisionStore(project_folder(start.home, start.root))
    newest = {change.file: change for change in store.changes()}
    changes = sorted(newest.values(), key=lambda change: change.time, reverse=True)
    if args.has("--json"):
        show(msgspec.json.encode([{"file": c.path, "time": c.time, "changed": c.origin} for c in changes]).decode())
        return 0
    if not changes:
        show(f"cru has changed no file of {start.root}, or keeps none any more")
    for change in changes:
        show(f"{format_time(int(change.time))}  {one_line(change.path)}  ({_who(change.origin)})")
    return 0


def _now(revision: Revision) -> FileSummary:
    file = revision.change.file
    return FileSummary(file, revision.state, revision.store.look(file))


def _restore(revision: Revision) -> int:
    """Raises NotKept, StoreFailed, NoRevision."""
    store, file = revision.store, revision.change.file
    current = store.look(file)
    if current.is_same(revision.state):
        show(f"{one_line(file)} is as revision {revision.number}")
        return 0
    if not store.has(revision.state):
        raise NoRevision(f"revision {revision.number} of {file} is not kept: {revision.about()}")
    step = Step(file, revision.state, current, current, StepKind.WRITE)
    result = apply(store, [step], ChangeOrigin(ChangedBy.RESTORE, tool="cru history --restore"))
    if result.failed:
        raise NoRevision(f"nothing was restored: {result.failed[0]}")
    show(f"{one_line(file)} is as before {_who(revision.change.origin)} again; how it was is revision 1 now")
    return 0
