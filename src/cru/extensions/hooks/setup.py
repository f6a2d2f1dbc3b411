"""From files to hooks on the bus: which dialects there are, what each of their entries may do, and what a person is told about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from cru.contexts.line_file import LineFile
from cru.events.stream import Notice
from cru.extensions.hooks import loader
from cru.extensions.hooks.discovery import HookLocations, HookWatcher
from cru.extensions.hooks.discovery import Policy as Choice
from cru.extensions.hooks.errors import Untrusted
from cru.extensions.hooks.loader import LoadedHooks, MissingHook
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import Dialect
from cru.extensions.hooks.session import Hooks
from cru.extensions.hooks.settings import HookOptions, SessionHookOptions
from cru.extensions.hooks.trust import missing as lost
from cru.extensions.hooks.trust.store import HookTrust
from cru.extensions.hooks.visible import visible
from cru.permissions.trust import TrustStore

if TYPE_CHECKING:
    from cru.extensions.hooks.model.entry import HookFileProblem

# In the order in which their hooks compose. Name → module below dialects/, and the class in it.
DIALECTS: dict[str, tuple[str, str]] = {
    "cru": ("cru", "CruDialect"),
    "crush": ("crush", "Crush"),
    "claude": ("claude", "Claude"),
    "codex": ("codex", "Codex"),
    "gemini": ("gemini", "Gemini"),
}


SHOWN = 5
"""What is wrong in a file is told so often at the start of a session."""
LINE = 500
"""Characters of a line that is told."""


class HookInventory(Struct):
    """Everything there is for somebody who stands here; `trust` knows what was said about it. missing: `lost`, and what others stand in the
    place of."""

    loaded: LoadedHooks
    dialects: Mapping[str, Dialect]
    trust: HookTrust
    about: SessionFacts
    missing: list[MissingHook] = []


def load_dialects(names: Iterable[str]) -> dict[str, Dialect]:
    """These dialects, in the order of the table."""
    wanted = set(names)
    return {
        name: getattr(import_module(f"cru.extensions.hooks.dialects.{module}.dialect"), kind)()
        for name, (module, kind) in DIALECTS.items()
        if name in wanted
    }


def take_inventory(
    names: Iterable[str], about: SessionFacts, options: HookOptions, choice: Choice = "trusted"
) -> HookInventory:
    """Read the files of these dialects; nothing is run."""
    dialects = load_dialects(names)
    trust = HookTrust(TrustStore(about.home / "trust.json"), about)
    everything = choice == "all"
    policy = loader.LoadPolicy(
        accepted=frozenset(dialects if everything else options.dialects),
        disabled=frozenset(options.disabled),
        by_project=options.by_project if isinstance(options, SessionHookOptions) else frozenset(),
        is_trusted=(lambda entry: True) if everything else trust.is_trusted,
        is_refused=trust.is_refused,
        changed=trust.differs,
        digest=trust.digest,
    )
    files = lost.files_of(dialects.values(), about)
    given, problems = loader.read_sources(dialects.values(), about)
    loaded = loader.load_hooks(given, dialects, policy)
    loaded.problems[:0] = problems
    missing = lost.find(loaded, files, trust.said())
    lost.join(loaded, missing)
    return HookInventory(loaded, dialects, trust, about, missing)


def session_facts(
    where: HookLocations, options: HookOptions, folder: Path, context: str = "", session_id: str = ""
) -> SessionFacts:
    """The facts of a session, as far as they do not change; `folder` is that of its context."""
    from cru.models.providers import key_variables

    own = {"CRU_CONTEXT": context, "CRU_HOME": str(where.home), "CRU_PROJECT_ROOT": str(where.root)}
    return SessionFacts(
        session_id=session_id, context=context, folder=folder, cwd=where.cwd, root=where.root, home=where.home,
        user_home=where.user_home, env={**where.env, **own}, mode=lambda: "ask", transcript=lambda: folder / "context.jsonl",
        secret_names=key_variables(where.env).difference(options.env_pass),
    )  # fmt: skip


def register_hooks(door: HookWatcher, names: Iterable[str]) -> None:
    """Read what there is, and put it on the bus in place of what was there. Raises Untrusted (only with `strict`)."""
    parts, bus = door.parts, door.parts.bus
    hooks = door.hooks
    about = hooks.about if hooks is not None else _about(door)
    found = take_inventory(names, about, door.options, door.policy)
    if door.strict:
        _insist(found.loaded)
    for notice in notices(found, door):
        bus.stream.tell(notice)
    parts.gate.guard(found.trust.files(entry for entry in found.loaded.active() if entry.of_project))
    trust = None if door.policy == "all" else found.trust
    if hooks is not None:
        hooks.replace(found.loaded, found.dialects, trust)
        return
    log = LineFile(parts.store.folder / "hooks.jsonl", redact=door.redact)
    door.hooks = hooks = Hooks(found.loaded, found.dialects, about, log, trust, door.redact, door.plugins)
    hooks.bind(parts)
    hooks.register(bus)
    parts.lifecycle.closing.append(hooks.close)


def _about(door: HookWatcher) -> SessionFacts:
    from cru.extensions.hooks.dialects.claude.transcript import Transcript

    parts = door.parts
    store = parts.store
    about = session_facts(door.where, door.options, store.folder, store.name, parts.bus.origin.session_id)
    about.mode = lambda: parts.gate.mode
    about.sits = lambda: parts.services.is_chat
    about.transcript = Transcript(store, about.cwd, about.root, parts.bus.stream.warn)
    return about


def _insist(loaded: LoadedHooks) -> None:
    """Raises Untrusted if anything awaits a person or is broken."""
    waiting = [
        (
            one.entry.source.path,
            f"{one.entry.where}: {one.entry.label}: {one.state}" + (f" ({one.why})" if one.changed else ""),
        )
        for one in loaded.of(*loader.WAITING)
    ]
    waiting += [(Path(one.file), f"{one.label}: {one.why}") for one in loaded.lost]
    broken = [*_broken(loaded), *((one.path, str(one)) for one in _left_out(loaded))]
    lines = _cut(waiting, "cru hooks list") + _cut(broken, "cru hooks check")
    if lines:
        listed = "\n".join(f"  {line}" for line in lines)
        steps = ["`cru hooks review` shows what awaits trust"] if waiting else []
        steps += ["`cru hooks check` says what is wrong in the files"] if broken else []
        raise Untrusted(f"--strict-hooks: not every hook that is there can run:\n{listed}", "; ".join(steps))


# what a person is told -----------------------------------------------------------------------------------------------------------


def notices(found: HookInventory, door: HookWatcher) -> list[Notice]:
    """What does not run although it stands in a file, and why; what runs although nobody has accepted it."""
    loaded = found.loaded
    told = [str(problem) for problem in found.trust.store.problems[:1]]
    told += _cut([*((one.path, str(one)) for one in _worth_telling(loaded)), *_broken(loaded)], "cru hooks check")
    told += door.options.ignored if isinstance(door.options, SessionHookOptions) else ()
    told += _waiting(loaded)
    by_file: dict[Path, int] = {}
    for one in loaded.of("not accepted"):
        by_file[one.entry.source.path] = by_file.get(one.entry.source.path, 0) + 1
    told += [
        f"{_short(path, found.about)} has {_count(n, 'hook')}, off: `cru hooks review`" for path, n in by_file.items()
    ]
    if door.policy == "all":
        told += _unaccepted(found, door.options)
    out = [Notice("warning", in_a_line(text), "hooks") for text in told]
    never = len(loaded.of("no moment", "not available yet"))
    if never:
        out.append(
            Notice("info", f"{_count(never, 'hook')} never {'runs' if never == 1 else 'run'} here: `cru hooks list`")
        )
    return out


def _waiting(loaded: LoadedHooks) -> list[str]:
    """What awaits trust: first what was trusted as it was before, since people may rely on it."""
    waiting = loaded.of("untrusted")
    changed = [one for one in waiting if one.changed]
    told = []
    if changed:
        have = "has changed and does" if len(changed) == 1 else "have changed and do"
        listed = "; ".join(f"{one.entry.label}: {one.why.partition(': `')[0]}" for one in changed[:SHOWN])
        told.append(
            f"{_count(len(changed), 'project hook')} that you trusted {have} not run: `cru hooks review` ({listed})"
        )
    if loaded.lost:
        have = "has changed or is" if len(loaded.lost) == 1 else "have changed or are"
        listed = "; ".join(f"{one.label}: {one.why}" for one in loaded.lost[:SHOWN])
        what = f"{_count(len(loaded.lost), 'project hook')} that you trusted {have} switched off"
        told.append(f"{what}: `cru hooks review` ({listed})")
    new = len(waiting) - len(changed)
    if new:
        told.append(f"{_count(new, 'project hook')} {'awaits' if new == 1 else 'await'} trust: `cru hooks review`")
    return told


def _worth_telling(loaded: LoadedHooks) -> list[HookFileProblem]:
    """What is left out, and what is odd in files that are used."""
    used = {one.entry.source.path for one in loaded.of("active")}
    odd = [problem for problem in loaded.problems if problem.path in used and not (problem.fatal or problem.void)]
    return _left_out(loaded) + odd


def _left_out(loaded: LoadedHooks) -> list[HookFileProblem]:
    """Files and parts of files that are void; another program's file that is off is its own affair."""
    off = {one.entry.source.path for one in loaded.of("not accepted")}
    return [problem for problem in loaded.problems if problem.fatal or (problem.void and problem.path not in off)]


def _broken(loaded: LoadedHooks) -> list[tuple[Path, str]]:
    return [
        (one.entry.source.path, f"{one.entry.where}: the hook is left out: {one.why}") for one in loaded.of("broken")
    ]


def _cut(told: list[tuple[Path, str]], more: str) -> list[str]:
    """The first few of each file, each on one line; of the others only how many there are."""
    by_file: dict[Path, list[str]] = {}
    for path, text in told:
        by_file.setdefault(path, []).append(text)
    out: list[str] = []
    for path, texts in by_file.items():
        out += [in_a_line(text) for text in texts[:SHOWN]]
        if len(texts) > SHOWN:
            out.append(in_a_line(f"{path}: and {len(texts) - SHOWN} more: `{more}`"))
    return out


def in_a_line(text: str) -> str:
    """A stranger's words as one line that a terminal shows as it is."""
    start = text[: LINE + 1]
    plain = visible(start)
    return plain if len(text) <= LINE and len(plain) <= LINE else plain[: LINE - 1] + "…"


def _unaccepted(found: HookInventory, options: HookOptions) -> list[str]:
    running = [
        entry
        for entry in found.loaded.active()
        if (entry.of_project and not found.trust.is_trusted(entry))
        or (entry.source.layer != "project" and not entry.source.own and entry.dialect not in options.dialects)
    ]
    if not running:
        return []
    listed = ", ".join(in_a_line(entry.label) for entry in running)
    return [f"--hooks=all: {_count(len(running), 'hook')} that nobody has accepted may run: {listed}"]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _short(path: Path, about: SessionFacts) -> str:
    return f"~/{path.relative_to(about.user_home)}" if path.is_relative_to(about.user_home) else str(path)
