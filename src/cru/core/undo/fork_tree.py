"""The turns of a conversation and what was forked from it, as a tree in text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from cru.core.base.values.visible import visible
from cru.core.conversations import ContextError
from cru.core.conversations.forks import ForkOrigin, read_origin
from cru.core.conversations.home import Home
from cru.core.conversations.identity import known_session_id
from cru.core.conversations.state import CONTEXTS
from cru.core.conversations.store import FileContext
from cru.core.undo.conversation import ConversationTurn, TurnState, list_turns

WORDS = 72
"""Characters of a prompt in a row."""
_STATES = {
    TurnState.THERE: "",
    TurnState.UNDONE: "taken back",
    TurnState.COMPACTED: "in the summary",
    TurnState.CLEARED: "put aside",
}


class ForkNode(Struct):
    """A context, its own turns (a fork's begin behind those that were copied), and its forks.

    origin: what it was forked from, None: nothing
    problem: why its turns are not known
    """

    name: str
    origin: ForkOrigin | None = None
    turns: list[ConversationTurn] = []
    forks: list[ForkNode] = field(default_factory=list)
    problem: str = ""


def build_tree(home: Path, name: str) -> ForkNode:
    """The tree that the context belongs to, from the first of its ancestors that is still there. Raises StoreUnreadable."""
    contexts = Home(home)
    names = [known for known in contexts.names() if (home / CONTEXTS / known).is_dir()]
    origins = {known: _origin(home / CONTEXTS / known) for known in names}
    by_id = {known_session_id(home / CONTEXTS / known): known for known in names}
    root, passed = name, {name}
    while (origin := origins.get(root)) is not None and (above := by_id.get(origin.session_id)) not in (None, *passed):
        assert above is not None
        root = above
        passed.add(above)
    children: dict[str, list[str]] = {}
    for known, origin in origins.items():
        if origin is not None and (above := by_id.get(origin.session_id)) is not None:
            children.setdefault(above, []).append(known)
    return _node(home, root, origins, children, set())


def _origin(folder: Path) -> ForkOrigin | None:
    try:
        return read_origin(folder)
    except ContextError:
        return None  # its turns cannot be read either, which is told


def _node(
    home: Path, name: str, origins: dict[str, ForkOrigin | None], children: dict[str, list[str]], passed: set[str]
) -> ForkNode:
    passed.add(name)
    node = ForkNode(name, origins.get(name))
    copied = 0 if node.origin is None else node.origin.turn
    folder = home / CONTEXTS / name
    if folder.is_dir():
        try:
            store = FileContext(folder)
            node.turns = [turn for turn in list_turns(store.streamed()) if turn.number > copied]
            store.close()
        except ContextError as error:
            node.problem = error.message
    node.forks = [
        _node(home, child, origins, children, passed) for child in children.get(name, ()) if child not in passed
    ]
    return node


def render_tree(node: ForkNode, current: str) -> str:
    """Lines for people; `*` marks the current context."""
    above = node.origin
    lost = f"  (forked from {above.name} behind turn {above.turn}, which is gone)" if above is not None else ""
    return "\n".join(_lines(node, current, "", lost))


def _lines(node: ForkNode, current: str, indent: str, about: str) -> Iterator[str]:
    yield f"{indent}{'*' if node.name == current else '-'} {node.name}{about}"
    inner = f"{indent}  "
    if node.problem:
        yield f"{inner}{visible(node.problem)}"
    elif not node.turns:
        yield f"{inner}(no turns{' of its own' if node.origin else ''} yet)"
    shown: set[str] = set()
    first = node.turns[0].number if node.turns else 0
    for fork in _forks_before(node, first):
        shown.add(fork.name)
        yield from _lines(fork, current, f"{inner}  ", _behind(fork))
    for turn in node.turns:
        state = _STATES[turn.state]
        yield f"{inner}{turn.number:>3}  {_words(turn.words)}{f'  [{state}]' if state else ''}"
        for fork in node.forks:
            if fork.origin is not None and fork.origin.turn == turn.number:
                shown.add(fork.name)
                yield from _lines(fork, current, f"{inner}     ", _behind(fork))
    for fork in node.forks:
        if fork.name not in shown:
            yield from _lines(fork, current, f"{inner}     ", _behind(fork))


def _forks_before(node: ForkNode, first: int) -> list[ForkNode]:
    """Those that were forked from a fork behind a turn that itself had copied."""
    return [fork for fork in node.forks if fork.origin is not None and fork.origin.turn < first]


def _behind(fork: ForkNode) -> str:
    return f"  (forked behind turn {fork.origin.turn})" if fork.origin is not None else ""


def _words(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= WORDS else f"{shown[: WORDS - 1]}…"
