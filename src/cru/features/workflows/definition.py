"""What a workflow is made of, and the reading of a definition: everything that can be wrong is said at once, with the closest name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from msgspec import Struct

from cru.core.api.arguments import function, lua_type, number, text, texts, tostring, whole
from cru.core.api.callbacks import Callback, bind_callback
from cru.core.api.host import BadArgument
from cru.core.base.config.closest import did_you_mean
from cru.core.base.files.glob import BadGlob, compile_identifier_glob, parse_path_glob

WHERE = "cru.fsm.define"
NAME = re.compile(r"[A-Za-z][\w-]*\Z", re.ASCII)
MACHINE = ("name", "initial", "about", "states", "limits", "protect")
STATE = ("instruction", "tools", "to", "back", "exit", "limits", "final", "about", "recheck")
GUARD = ("shell", "call", "timeout", "about")
FINAL_STATE = ("instruction", "final", "about", "recheck")
LEGS = 200
SHELL_SECONDS = 600.0
CALL_SECONDS = 60.0


class Guard(Struct, frozen=True):
    """What must hold before a state is left: a shell command that succeeds, or a function.

    shell: the command, "" for a function
    call: the function; None: it is a command
    timeout: seconds
    about: what must hold, in words of the definition
    """

    shell: str = ""
    call: Callback | None = None
    timeout: float = SHELL_SECONDS
    about: str = ""

    def words(self) -> str:
        """What must hold, for the model and for people."""
        return self.about or (f"`{self.shell}` must succeed" if self.shell else "its check must pass")


class Limits(Struct, frozen=True):
    """How long something may last.

    legs, rounds: 0: as long as it likes
    on_limit: the state that follows; "": the workflow stops
    """

    legs: int = 0
    rounds: int = 0
    on_limit: str = ""


class WorkflowState(Struct, frozen=True):
    """One state of a workflow.

    tools: globs of the tools that it allows; None: all
    to: where it goes on, through the guard
    back: where it may return to, without the guard
    final: the workflow is done in it
    recheck: of a final state: states whose guards must let go once more before it is entered
    """

    name: str
    instruction: str = ""
    about: str = ""
    tools: tuple[str, ...] | None = None
    to: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    guard: Guard | None = None
    limits: Limits = Limits()
    final: bool = False
    recheck: tuple[str, ...] = ()

    @property
    def ways(self) -> tuple[str, ...]:
        """Every state that the agent may ask for from here."""
        return (*self.to, *self.back)

    def allows(self, tool: str) -> bool:
        return self.tools is None or any(compile_identifier_glob(glob)(tool) for glob in self.tools)


class Definition(Struct, frozen=True):
    """A whole workflow.

    states: by name, in the order in which they are reached from the initial one
    limits: of a whole run
    protect: globs of the files that the checks consist of, from the project root
    """

    name: str
    initial: str
    states: dict[str, WorkflowState]
    about: str = ""
    limits: Limits = Limits(legs=LEGS)
    protect: tuple[str, ...] = ()


def read_definition(spec: object) -> Definition:
    """The definition in a table of an extension. Raises BadArgument."""
    fields = _check_table("the definition", spec, MACHINE)
    name = text(WHERE, "name", fields.get("name"))
    if NAME.match(name) is None:
        raise _error(f"name `{name}`", "a name is letters, digits, - and _, since it is a command too")
    where = f"workflow {name}"
    raw = fields.get("states")
    if not isinstance(raw, dict) or not raw:
        raise _error(f"{where}: states must be a table of states by name, got {lua_type(raw)}")
    states = {tostring(key): _read_state(where, key, state, raw) for key, state in raw.items()}
    initial = _check_known(f"{where}: initial", fields.get("initial"), states)
    _check_states(where, initial, states)
    limits = _read_limits(where, fields.get("limits"), ("legs", "rounds"), states)
    if not limits.legs:
        limits = Limits(LEGS, limits.rounds)
    protect = _read_protect(where, fields.get("protect"))
    return Definition(name, initial, _by_distance(initial, states), _read_text(where, "about", fields), limits, protect)


def _read_protect(where: str, raw: Any) -> tuple[str, ...]:
    globs = () if raw is None else tuple([raw] if isinstance(raw, str) else texts(WHERE, f"{where}: protect", raw))
    for glob in globs:
        try:
            parse_path_glob(glob)
        except BadGlob as error:
            raise _error(f"{where}: protect: {error.message}", error.hint) from error
    return globs


def _read_state(where: str, name: object, raw: object, known: Collection[str]) -> WorkflowState:
    if not isinstance(name, str) or NAME.match(name) is None:
        raise _error(
            f"{where}: state {name!r}", 'a state has a name of letters, digits, - and _: plan = { to = {"work"} }'
        )
    where = f"{where}, state {name}"
    fields = _check_table(where, raw, STATE)
    final = fields.get("final", False)
    if not isinstance(final, bool):
        raise _error(f"{where}: final must be a boolean, got {lua_type(final)}")
    superfluous = [key for key in fields if final and key not in FINAL_STATE]
    if superfluous:
        raise _error(
            f"{where}: it is final, so it has no `{superfluous[0]}`", "a final state has an instruction at most"
        )
    guard = _read_guard(where, fields["exit"]) if fields.get("exit") is not None else None
    state = WorkflowState(
        name, _read_text(where, "instruction", fields), _read_text(where, "about", fields), _read_tools(where, fields.get("tools")),
        _read_targets(where, "to", fields, name, known), _read_targets(where, "back", fields, name, known), guard,
        _read_limits(where, fields.get("limits"), ("legs", "rounds", "on_limit"), known), final,
        _read_targets(where, "recheck", fields, name, known),
    )  # fmt: skip
    if state.recheck and not final:
        raise _error(f"{where}: recheck is for a final state", "an `exit` guards the way out of a state")
    if not final and not state.ways:
        raise _error(f"{where}: it leads nowhere", 'give `to = {"…"}`, or `final = true`')
    if guard is not None and not state.to:
        raise _error(f"{where}: `exit` guards the way to the states in `to`, and there are none", "name them in `to`")
    if state.limits.on_limit == name:
        raise _error(
            f"{where}: on_limit is the state itself", "name another state, or leave it out: then the workflow stops"
        )
    return state


def _check_states(where: str, initial: str, states: dict[str, WorkflowState]) -> None:
    """What only shows when all states are known."""
    finals = [state.name for state in states.values() if state.final]
    if not finals:
        raise _error(f"{where}: no state is final", "one needs `final = true`: done = { final = true }")
    if states[initial].final:
        raise _error(f"{where}: the initial state `{initial}` is final", "it would be over before it begins")
    for state in states.values():
        unguarded = [name for name in state.recheck if states[name].guard is None]
        if unguarded:
            raise _error(
                f"{where}, state {state.name}: recheck: state `{unguarded[0]}` has no `exit`",
                "name a state that has one",
            )
        if state.limits.on_limit in finals:
            raise _error(
                f"{where}, state {state.name}: on_limit leads to the final state `{state.limits.on_limit}`",
                "a limit is no success: name a state where something is done about it, or leave it out to stop",
            )
    reached = _by_distance(initial, states)
    unreachable = sorted(name for name in states if name not in reached)
    if unreachable:
        raise _error(
            f"{where}: state `{unreachable[0]}` cannot be reached from `{initial}`", "name it in `to` of another state"
        )


def _by_distance(initial: str, states: dict[str, WorkflowState]) -> dict[str, WorkflowState]:
    """The states that can be reached, nearest first: tables of Lua have no order of their own."""
    names = [initial]
    for name in names:
        state = states[name]
        names += [n for n in (*state.ways, state.limits.on_limit) if n and n not in names]
    return {name: states[name] for name in names}


def _read_guard(where: str, raw: object) -> Guard:
    if callable(raw):
        return Guard(call=bind_callback(function(WHERE, "exit", raw)).detached(), timeout=CALL_SECONDS)
    fields = _check_table(f"{where}: exit", raw, GUARD, "a function or a table {shell = …}")
    if (fields.get("shell") is None) == (fields.get("call") is None):
        raise _error(f"{where}: exit needs one of `shell` and `call`", 'exit = { shell = "make test", timeout = 600 }')
    command = _read_text(where, "exit.shell", fields, "shell")
    if fields.get("call") is None and not command.strip():
        raise _error(f"{where}: exit.shell is empty")
    usual = SHELL_SECONDS if command else CALL_SECONDS
    seconds = number(WHERE, f"{where}: exit.timeout", fields.get("timeout", usual), 0.001)
    description = _read_text(where, "exit.about", fields, "about")
    if command:
        return Guard(command, None, seconds, description)
    work: Callable[..., Any] = function(WHERE, f"{where}: exit.call", fields["call"])
    return Guard("", bind_callback(work).detached(), seconds, description)


def _read_limits(where: str, raw: object, keys: tuple[str, ...], states: Collection[str]) -> Limits:
    if raw is None:
        return Limits()
    fields = _check_table(f"{where}: limits", raw, keys)
    legs, rounds = (
        whole(WHERE, f"{where}: limits.{key}", fields[key], 1) if fields.get(key) is not None else 0
        for key in ("legs", "rounds")
    )
    if fields.get("on_limit") is None:
        return Limits(legs, rounds)
    if not legs and not rounds:
        raise _error(f"{where}: on_limit without a limit", 'limits = { legs = 20, on_limit = "review" }')
    return Limits(legs, rounds, _check_known(f"{where}: limits.on_limit", fields["on_limit"], states))


def _read_targets(where: str, key: str, fields: dict[str, Any], name: str, known: Collection[str]) -> tuple[str, ...]:
    raw = fields.get(key)
    names = [raw] if isinstance(raw, str) else texts(WHERE, f"{where}: {key}", raw)
    for target in names:
        _check_known(f"{where}: {key}", target, known)
        if target == name:
            raise _error(f"{where}: {key} names the state itself", "staying needs no transition")
    twice = [target for target in names if names.count(target) > 1]
    if key == "back":
        to = fields.get("to") or ()
        twice += [target for target in names if target in ((to,) if isinstance(to, str) else to)]
    if twice:
        raise _error(
            f"{where}: `{twice[0]}` is named twice", "`to` goes through the guard, `back` does not: choose one"
        )
    return tuple(names)


def _read_tools(where: str, raw: Any) -> tuple[str, ...] | None:
    if raw is None:
        return None
    globs = tuple([raw] if isinstance(raw, str) else texts(WHERE, f"{where}: tools", raw))
    for glob in globs:
        try:
            compile_identifier_glob(glob)
        except BadGlob as error:
            raise _error(f"{where}: tools: {error.message}", error.hint) from error
    return globs


def _check_known(where: str, raw: object, known: Collection[str]) -> str:
    """The name of a state that there is."""
    if not isinstance(raw, str):
        raise _error(f"{where} must be the name of a state, got {lua_type(raw)}")
    if raw not in known:
        hint = f"there are {', '.join(sorted(map(str, known)))}"
        raise _error(f"{where}: there is no state `{raw}`", did_you_mean(raw, map(str, known)) or hint)
    return raw


def _check_table(
    where: str, raw: object, known: Collection[str], expected: str = "a table with keys"
) -> dict[str, object]:
    if raw == []:
        return {}
    if not isinstance(raw, dict):
        raise _error(f"{where} must be {expected}, got {lua_type(raw)}")
    for key in raw:
        if key not in known:
            raise _error(f"{where}: unknown key `{key}`", did_you_mean(str(key), known) or f"known: {', '.join(known)}")
    return raw


def _read_text(where: str, label: str, fields: dict[str, object], key: str = "") -> str:
    raw = fields.get(key or label)
    return "" if raw is None else text(WHERE, f"{where}: {label}", raw)


def _error(message: str, hint: str = "") -> BadArgument:
    return BadArgument(f"{WHERE}: {message}", hint)
