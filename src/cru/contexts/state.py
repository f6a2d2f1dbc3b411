"""`state.json` and `session.json` of a home: which contexts there are, which is current, which was before.

Both of chibi's shapes are read, and the shape that was found is kept when writing:
- names: `{"contexts": ["a", "b"], "current_context": "a"}` (0.4, and ours)
- objects: `{"contexts": [{"name": "a", ...}]}`; then the current one is in `session.json`

`session.json` is `{"implied_context", "previous_context"}`, and `expiring`: the contexts that destroy themselves (see expiry.py).
Keys that we do not know stay.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cru.config.regular import read_regular
from cru.contexts.atomic import replace_file, set_aside
from cru.contexts.entries import Problem, now, why
from cru.contexts.errors import reason, writing
from cru.contexts.names import DEFAULT, is_name

STATE, SESSION = "state.json", "session.json"
EXPIRING = "expiring"
# When chibi destroys a context; 0 = never.
AT, AFTER = "destroy_at", "destroy_after_seconds_inactive"


class State(Struct, frozen=True):
    """What both files say together."""

    names: tuple[str, ...] = ()
    current: str = DEFAULT
    previous: str | None = None
    problems: tuple[Problem, ...] = ()
    expiring: tuple[str, ...] = ()


def load(home: Path) -> State:
    """Read both files; missing ones mean the defaults, broken ones too, with a problem. Nothing is changed."""
    state, broken_state = _read(home / STATE)
    session, broken_session = _read(home / SESSION)
    problems = [*broken_state, *broken_session]
    implied = _name(session, "implied_context", SESSION, problems)
    current = _name(state, "current_context", STATE, problems) or implied or DEFAULT
    previous = _name(session, "previous_context", SESSION, problems)
    if implied and implied != current:  # another program has switched without telling session.json
        previous = implied
    names = tuple(n for n in map(_name_of, _contexts(state)) if is_name(n))
    expiring = tuple(n for n in _expiring(state, session) if is_name(n))
    return State(names, current, previous if previous != current else None, tuple(problems), expiring)


def save(home: Path, current: str, previous: str | None, *, add: str = "", drop: str = "") -> None:
    """Write the current and the previous context; `add` joins the list, `drop` leaves it, both together are a rename.

    Broken files are kept as `<name>.corrupt-<n>`. Raises StoreUnwritable.
    """

    def edit(state: dict[str, Any], session: dict[str, Any]) -> None:
        objects = has_objects(state)
        state["contexts"] = _edited(_contexts(state), add, drop, objects)
        if not objects:
            state["current_context"] = current
        session["implied_context"] = current
        session["previous_context"] = previous
        if previous is None:
            del session["previous_context"]
        if drop and EXPIRING in session:
            list_expiring(session, drop, add)

    change(home, edit)


def change(home: Path, edit: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Let `edit` change what state.json and session.json hold, alone among processes. Raises StoreUnwritable."""
    with writing(home / STATE):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        guard = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(guard, fcntl.LOCK_EX)
            held = [(home / name, _read(home / name)[0]) for name in (STATE, SESSION)]
            before = [msgspec.json.encode(raw) for _, raw in held]
            edit(held[0][1], held[1][1])
            for (path, raw), old in zip(held, before, strict=True):
                if msgspec.json.encode(raw) != old:
                    _write(path, raw)
        finally:
            os.close(guard)


def object_of(raw: dict[str, Any], name: str) -> dict[str, Any] | None:
    """What a state.json of objects says about a context; None if it lists names, or not this one."""
    return next((item for item in _contexts(raw) if isinstance(item, dict) and item.get("name") == name), None)


def listed(home: Path, name: str) -> dict[str, Any] | None:
    """The same of a home's state.json as it is now."""
    return object_of(_read(home / STATE)[0], name)


def add_object(state: dict[str, Any], name: str) -> dict[str, Any]:
    """The object of a context in a state.json of objects, made if it is missing."""
    state["contexts"] = _edited(_contexts(state), name, "", True)
    found = object_of(state, name)
    assert found is not None
    return found


def list_expiring(session: dict[str, Any], drop: str, add: str = "") -> None:
    """Take a name out of the list of those that expire; `add` comes in its place, if it was there or nothing is dropped."""
    names = _strings(session.get(EXPIRING))
    kept = [name for name in names if name not in (drop, add)]
    if add and (not drop or drop in names):
        kept.append(add)
    session[EXPIRING] = kept
    if not kept:
        del session[EXPIRING]


def _read(path: Path) -> tuple[dict[str, Any], list[Problem]]:
    try:
        raw = msgspec.json.decode(read_regular(path), type=dict[str, Any])
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        return {}, [Problem(path.name, 0, f"cannot be read, defaults are used: {reason(error)}")]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return {}, [Problem(path.name, 0, f"not valid, defaults are used: {why(error)}")]
    if not isinstance(raw.get("contexts", []), list):
        return {}, [Problem(path.name, 0, "not valid, defaults are used: 'contexts' is not a list")]
    return raw, []


def _write(path: Path, raw: dict[str, Any]) -> None:
    _, broken = _read(path)
    if broken:
        set_aside(path, "corrupt")
    replace_file(path, msgspec.json.format(msgspec.json.encode(raw), indent=2) + b"\n")


def _contexts(raw: dict[str, Any]) -> list[Any]:
    contexts: list[Any] = raw.get("contexts", [])
    return contexts


def _name(raw: dict[str, Any], key: str, file: str, problems: list[Problem]) -> str | None:
    value = raw.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not is_name(value):
        problems.append(Problem(file, 0, f"'{key}' is not the name of a context, ignored: {value!r}"))
        return None
    return value


def _name_of(item: Any) -> str:
    name = item.get("name") if isinstance(item, dict) else item
    return name if isinstance(name, str) else ""


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _expiring(state: dict[str, Any], session: dict[str, Any]) -> list[str]:
    """The names in session.json, and those that chibi has marked."""
    marked = [_name_of(c) for c in _contexts(state) if isinstance(c, dict) and (c.get(AT) or c.get(AFTER))]
    return list(dict.fromkeys((*_strings(session.get(EXPIRING)), *marked)))


def has_objects(raw: dict[str, Any]) -> bool:
    """Whether a state.json lists objects, as chibi's newer one does."""
    contexts = _contexts(raw)
    return any(isinstance(c, dict) for c in contexts) or bool(raw and not contexts and "current_context" not in raw)


def _edited(contexts: list[Any], add: str, drop: str, objects: bool) -> list[Any]:
    """The list with one name added, dropped, or replaced in place; nothing twice."""
    if add and drop:
        contexts = [_renamed(c, add) if _name_of(c) == drop else c for c in contexts]
    elif drop:
        contexts = [c for c in contexts if _name_of(c) != drop]
    if add and add not in map(_name_of, contexts):
        contexts = [*contexts, _object(add) if objects else add]
    return contexts


def _renamed(item: Any, name: str) -> Any:
    return {**item, "name": name} if isinstance(item, dict) else name


def _object(name: str) -> dict[str, Any]:
    moment = now()
    times = {"created_at": moment, "last_activity_at": moment}
    return {"name": name, **times, AFTER: 0, AT: 0}
