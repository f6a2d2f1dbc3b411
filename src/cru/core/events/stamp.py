"""What every delivered event carries beside its payload, and the frame around a handler's call."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Generic

from msgspec import Struct

from cru.core.events.catalog import EventRow

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    PayloadT = TypeVar("PayloadT", bound=Struct, default=Struct, covariant=True)
else:
    from typing import TypeVar

    PayloadT = TypeVar("PayloadT", bound=Struct, covariant=True)


class Stamp(Struct, frozen=True):
    """Where and when an event was raised.

    agent_id: "main", or the id of a sub-agent's task
    depth: 0 is the main agent
    dispatch_seq: counts the dispatches of one process run
    parent_seq: the dispatch in whose handler this one was raised; 0: none
    timestamp: unix seconds
    source: where the prompt of the leg comes from
    purpose: "" for ordinary work
    agent_type: the name of the sub-agent's card, "" for the main agent
    """

    session_id: str
    run_id: str
    agent_id: str
    parent_call_id: str
    depth: int
    is_sub_agent: bool
    dispatch_seq: int
    parent_seq: int
    timestamp: float
    is_continuation: bool
    source: str
    purpose: str
    agent_type: str = ""


class Event(Struct, Generic[PayloadT], frozen=True):
    """What a handler is called with. Read only, tables in the payload too: a change is an answer. A handler
    with an attribute `copies` hands copies to other people's code by itself; the others get one."""

    row: EventRow
    stamp: Stamp
    payload: PayloadT

    @property
    def name(self) -> str:
        return self.row.name


class Origin(Struct, frozen=True):
    """Which agent of which run a bus belongs to.

    agent_type: the name of a sub-agent's card
    folder: of a sub-agent's own context
    root: where it works, "": where the main agent does
    mode: gives its permission mode; None: that of the main agent
    """

    session_id: str
    run_id: str
    agent_id: str = "main"
    parent_call_id: str = ""
    depth: int = 0
    agent_type: str = ""
    folder: str = ""
    root: str = ""
    mode: Callable[[], str] | None = None


class DispatchBudget(Struct):
    """How many dispatches one handler's call led to.

    over: it has returned, and what it left running keeps nobody waiting
    """

    count: int = 0
    over: bool = False


class Frame(Struct, frozen=True):
    """Who is being called right now.

    owners: events that they raise are not dispatched to them again
    depth: how many handlers call one another
    seq: the dispatch that calls
    below: shared by all that one call leads to; None outside of any
    """

    owners: frozenset[str] = frozenset()
    depth: int = 0
    seq: int = 0
    purpose: str = ""
    below: DispatchBudget | None = None


TOP = Frame()
FRAME: ContextVar[Frame] = ContextVar("cru_frame", default=TOP)
MAX_DEPTH = 16
MAX_BELOW = 10_000
"""How many events one call of a handler may lead to."""
