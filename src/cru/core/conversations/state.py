"""`state.json` and `session.json` of a home: which contexts there are, which is current, which was before.

Both of chibi's shapes are read, and the shape that was found is kept when writing:
- names: `{"contexts": ["a", "b"], "current_context": "a"}` (0.4, and ours)
- objects: `{"contexts": [{"name": "a", ...}]}`; then the current one is in `session.json`

`session.json` is `{"implied_context", "previous_context"}`, `expiring`: the contexts that destroy themselves (see expiry.py), and while
a rename is under way `renaming`: {from, to, session_id}. If the folder has its new name, the rest follows, though the rename was killed.
`projects`: which one is current in each project (see projects.py).
Keys that we do not know stay.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.files import read_json
from cru.core.base.files.regular import make_private_folder
from cru.core.conversations import StoreUnreadable, StoreUnwritable, os_error_text, write_errors
from cru.core.conversations.entries import LogProblem, now, short_error
from cru.core.conversations.identity import DEFAULT, ensure_session_id, is_name, known_origin, known_session_id

STATE, SESSION = "state.json", "session.json"
CONTEXTS = "contexts"
EXPIRING, RENAMING = "expiring", "renaming"
# When chibi destroys a context; 0 = never. Beside them ours: the context that is meant, whatever is called so later.
AT, AFTER, OWNER = "destroy_at", "destroy_after_seconds_inactive", "session_id"


class HomeState(Struct, frozen=True):
    """What state.json and session.json say together.

    names: the contexts that are listed
    current: the current context
    previous: the one before it, if any
    problems: what is wrong with the files
    expiring: the contexts that may destroy themselves
    outside: the current context outside of projects
    is_new: the project has no context of its own yet; `current` is what it would be called
    """

    names: tuple[str, ...] = ()
    current: str = DEFAULT
    previous: str | None = None
    problems: tuple[LogProblem, ...] = ()
    expiring: tuple[str, ...] = ()
    outside: str = DEFAULT
    is_new: bool = False


def load_state(home: Path, project: str = "") -> HomeState:
    """Read both files; missing ones mean the defaults, broken ones too, with a problem. Nothing is changed. project: the root of the
    project whose current context counts, "" = the one outside of projects"""
    state, broken_state = _read(home / STATE)
    session, broken_session = _read(home / SESSION)
    _finish_rename(home, state, session)
    problems = [*broken_state, *broken_session]
    outside, previous = _outside(state, session, problems)
    names = tuple(n for n in map(_name_of, _contexts(state)) if is_name(n))
    expiring = tuple(n for n in _expiring_names(state, session) if is_name(n))
    current, is_new = outside, False
    if project:
        from cru.core.conversations.projects import read_records

        record = read_records(session).get(project)
        is_new = record is None
        current = name_for(home, project, state, session) if record is None else record.current
        previous = None if record is None else record.previous
    before = previous if previous != current else None
    return HomeState(names, current, before, tuple(problems), expiring, outside, is_new)


def _outside(
    state: dict[str, object], session: dict[str, object], problems: list[LogProblem]
) -> tuple[str, str | None]:
    """The current and the previous context outside of projects."""
    implied = _name(session, "implied_context", SESSION, problems)
    current = _name(state, "current_context", STATE, problems) or implied or DEFAULT
    previous = _name(session, "previous_context", SESSION, problems)
    if implied and implied != current:  # another program has switched without telling session.json
        previous = implied
    return current, previous


def name_for(home: Path, project: str, state: dict[str, object], session: dict[str, object]) -> str:
    """What the first context of a project is called: no other project's context, and none that was there before."""
    from cru.core.conversations.projects import first_name, read_records

    others = [record for root, record in read_records(session).items() if root != project]
    listed = set(map(_name_of, _contexts(state)))

    def is_taken(name: str) -> bool:
        folder = home / CONTEXTS / name
        if any(record.bears(name) for record in others):
            return True
        return known_origin(folder) != project if os.path.lexists(folder) else name in listed

    return first_name(project, is_taken)


def save_state(home: Path, current: str, previous: str | None, project: str = "") -> None:
    """Write the current and the previous context, of a project or outside of projects; the current one joins the list.

    Broken files are kept as `<name>.corrupt-<n>`. Raises StoreUnwritable.
    """

    def edit(state: dict[str, object], session: dict[str, object]) -> None:
        if project:
            from cru.core.conversations.projects import set_current

            _list_context(state, current, _outside(state, session, [])[0])
            set_current(session, project, current, previous)
            return
        state["contexts"] = _edit_list(_contexts(state), current, "", has_objects(state))
        _set_outside(state, session, current, previous)

    update_state(home, edit)


def _set_outside(state: dict[str, object], session: dict[str, object], current: str, previous: str | None) -> None:
    if not has_objects(state):
        state["current_context"] = current
    session["implied_context"] = current
    session["previous_context"] = previous
    if previous is None:
        del session["previous_context"]


def drop_context(home: Path, name: str, exists: Callable[[str], bool]) -> None:
    """A context is gone. Where it was current, the previous one is if it exists, else "default", or in a project a new one."""

    def edit(state: dict[str, object], session: dict[str, object]) -> None:
        current, previous = _outside(state, session, [])
        state["contexts"] = _edit_list(_contexts(state), "", name, has_objects(state))
        if name in (current, previous):
            before = None if previous in (name, current) else previous
            if current == name:
                current, before = (before, None) if before and exists(before) else (DEFAULT, None)
            _set_outside(state, session, current, before)
        if EXPIRING in session:
            list_expiring(session, name)
        if "projects" in session:
            from cru.core.conversations.projects import forget_context

            forget_context(session, name, exists)

    update_state(home, edit)


def add_context(home: Path, name: str, current: str) -> None:
    """Put a context into the list; `current` is written down if nothing says yet which one is. Raises StoreUnwritable."""

    update_state(home, lambda state, _: _list_context(state, name, current))


def _list_context(state: dict[str, object], name: str, current: str) -> None:
    objects = has_objects(state)
    state["contexts"] = _edit_list(_contexts(state), name, "", objects)
    if not objects:
        state.setdefault("current_context", current)


def begin_rename(home: Path, old: str, new: str, session_id: str) -> None:
    """Say that a folder is about to get another name. Whoever reads or changes these files when it has that name finds everything that
    was said of the old one said of the new one. Raises StoreUnwritable."""
    update_state(
        home, lambda _, session: session.update({RENAMING: {"from": old, "to": new, "session_id": session_id}})
    )


def end_rename(home: Path, old: str, new: str) -> None:
    """Write down what `begin_rename` announced. Raises StoreUnwritable."""
    update_state(home, lambda state, session: _rename(state, session, old, new))


def _finish_rename(home: Path, state: dict[str, object], session: dict[str, object]) -> None:
    """Finish a rename in what both files hold."""
    pending = session.get(RENAMING)
    if not isinstance(pending, dict):
        return
    old, new, key = (pending.get(name) for name in ("from", "to", "session_id"))
    try:
        moved = isinstance(new, str) and is_name(new) and known_session_id(home / CONTEXTS / new) == key
    except StoreUnreadable:
        return  # whoever opens it is told
    del session[RENAMING]
    if moved and isinstance(old, str) and isinstance(new, str):
        _rename(state, session, old, new)


def _rename(state: dict[str, object], session: dict[str, object], old: str, new: str) -> None:
    """Twice is as good as once."""
    session.pop(RENAMING, None)
    is_implied = old == DEFAULT and not (state.get("current_context") or session.get("implied_context"))
    state["contexts"] = _edit_list(_contexts(state), new, old, has_objects(state))
    if is_implied:  # the current context was this one because nothing said so
        session["implied_context"] = new
        if not has_objects(state):
            state["current_context"] = new
    for raw, name in ((state, "current_context"), (session, "implied_context"), (session, "previous_context")):
        if raw.get(name) == old:
            raw[name] = new
    if old in _strings(session.get(EXPIRING)):
        list_expiring(session, old, new)
    if "projects" in session:
        from cru.core.conversations.projects import rename_context

        rename_context(session, old, new)


def update_state(home: Path, edit: Callable[[dict[str, object], dict[str, object]], None]) -> None:
    """Let `edit` change what state.json and session.json hold, alone among processes. Raises StoreUnwritable."""
    with write_errors(home / STATE):
        make_private_folder(home)
        guard = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(guard, fcntl.LOCK_EX)
            held = [(home / name, _read(home / name)[0]) for name in (STATE, SESSION)]
            before = [msgspec.json.encode(raw) for _, raw in held]
            _finish_rename(home, held[0][1], held[1][1])
            edit(held[0][1], held[1][1])
            for (path, raw), old in zip(held, before, strict=True):
                if msgspec.json.encode(raw) != old:
                    _write(path, raw)
        finally:
            os.close(guard)


def find_object(raw: dict[str, object], name: str) -> dict[str, object] | None:
    """What a state.json of objects says about a context; None if it lists names, or not this one."""
    return next((item for item in _contexts(raw) if isinstance(item, dict) and item.get("name") == name), None)


def listed_context(home: Path, name: str) -> dict[str, object] | None:
    """The same of a home's state.json as it is now."""
    return find_object(_read(home / STATE)[0], name)


def add_object(state: dict[str, object], name: str) -> dict[str, object]:
    """The object of a context in a state.json of objects, made if it is missing."""
    state["contexts"] = _edit_list(_contexts(state), name, "", True)
    listed = find_object(state, name)
    assert listed is not None
    return listed


def bind_mark(home: Path, folder: Path) -> None:
    """Before a context goes or gets another name: a mark that chibi made says from now on whose it is, so that a kill leaves none to
    the next context of this name."""
    listed = listed_context(home, folder.name)
    if listed is None or not (listed.get(AT) or listed.get(AFTER)) or listed.get(OWNER):
        return

    def edit(state: dict[str, object], _: object) -> None:
        add_object(state, folder.name)[OWNER] = ensure_session_id(folder)[0]

    try:
        update_state(home, edit)
    except StoreUnwritable:
        pass  # it is only for a kill: a full disk must not keep a context from being deleted


def forget_mark(state: dict[str, object], session: dict[str, object], name: str) -> None:
    """The mark was another context's, or its context is gone."""
    list_expiring(session, name)
    listed = find_object(state, name)
    if listed is not None:
        listed.update({AT: 0, AFTER: 0})
        listed.pop(OWNER, None)


def list_expiring(session: dict[str, object], drop: str, add: str = "") -> None:
    """Take a name out of the list of those that expire, put `add` into it."""
    kept = [name for name in _strings(session.pop(EXPIRING, [])) if name not in (drop, add)]
    kept += [add] if add else []
    if kept:
        session[EXPIRING] = kept


def read_raw(path: Path) -> dict[str, object]:
    """What one of the files holds; {} if it is missing or broken."""
    return _read(path)[0]


def _read(path: Path) -> tuple[dict[str, object], list[LogProblem]]:
    try:
        raw = read_json(path, dict[str, object])
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        return {}, [LogProblem(path.name, 0, f"cannot be read, defaults are used: {os_error_text(error)}")]
    except msgspec.DecodeError as error:
        return {}, [LogProblem(path.name, 0, f"not valid, defaults are used: {short_error(error)}")]
    if not isinstance(raw.get("contexts", []), list):
        return {}, [LogProblem(path.name, 0, "not valid, defaults are used: 'contexts' is not a list")]
    return raw, []


def _write(path: Path, raw: dict[str, object]) -> None:
    from cru.core.base.files.atomic import replace_file, set_aside

    _, broken = _read(path)
    if broken:
        set_aside(path, "corrupt")
    replace_file(path, msgspec.json.format(msgspec.json.encode(raw), indent=2) + b"\n", keep_mode=False)


def _contexts(raw: dict[str, object]) -> list[object]:
    contexts = raw.get("contexts")
    return contexts if isinstance(contexts, list) else []


def _name(raw: dict[str, object], key: str, file: str, problems: list[LogProblem]) -> str | None:
    value = raw.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not is_name(value):
        problems.append(LogProblem(file, 0, f"'{key}' is not the name of a context, ignored: {value!r}"))
        return None
    return value


def _name_of(item: object) -> str:
    name = item.get("name") if isinstance(item, dict) else item
    return name if isinstance(name, str) else ""


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _expiring_names(state: dict[str, object], session: dict[str, object]) -> list[str]:
    """The names in session.json, and those that chibi has marked."""
    marked = [_name_of(c) for c in _contexts(state) if isinstance(c, dict) and (c.get(AT) or c.get(AFTER))]
    return list(dict.fromkeys((*_strings(session.get(EXPIRING)), *marked)))


def has_objects(raw: dict[str, object]) -> bool:
    """Whether a state.json lists objects, as chibi's newer one does."""
    contexts = _contexts(raw)
    return any(isinstance(c, dict) for c in contexts) or bool(raw and not contexts and "current_context" not in raw)


def is_chibi_home(home: Path) -> bool:
    """Whether a home is chibi's own: its name says so, or its state.json is as only chibi writes it."""
    return os.path.basename(os.path.realpath(home)) == ".chibi" or has_objects(read_raw(home / STATE))


def _edit_list(contexts: list[object], add: str, drop: str, objects: bool) -> list[object]:
    """The list with one name added, dropped, or replaced in place; nothing twice."""
    if add and drop:
        contexts = [_with_name(c, add) if _name_of(c) == drop else c for c in contexts]
    elif drop:
        contexts = [c for c in contexts if _name_of(c) != drop]
    if add and add not in map(_name_of, contexts):
        contexts = [*contexts, _new_object(add) if objects else add]
    return contexts


def _with_name(item: object, name: str) -> object:
    return {**item, "name": name} if isinstance(item, dict) else name


def _new_object(name: str) -> dict[str, object]:
    moment = now()
    times = {"created_at": moment, "last_activity_at": moment}
    return {"name": name, **times, AFTER: 0, AT: 0}
