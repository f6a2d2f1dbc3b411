"""The sessions that scripts know by their ids: the one they run in, and those that they have opened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, field

from cru.core.agents import FOLDER
from cru.core.agents.conversations import ConversationRecord, ConversationState, read_conversation, write_conversation
from cru.core.agents.manager import Task
from cru.core.agents.sub_agents import AgentConversation
from cru.core.api.agent_requests import Refused, agent_tasks, decide, make_request
from cru.core.api.arguments import text
from cru.core.api.host import BadArgument, NamespaceError, host
from cru.core.api.sessions.feed import EventReader, SessionFeed
from cru.core.conversations.store import ContextStore, FileContext
from cru.core.turn.parts import Parts


class NoSuchSession(NamespaceError):
    """There is no session of that id."""


class SessionBusy(NamespaceError):
    """A message of the session is being answered."""


class OpenSession(Struct, eq=False):
    """A session that scripts have opened.

    task: its last message of this process
    turn: held while a message is being answered
    """

    record: ConversationRecord
    folder: Path
    feed: SessionFeed
    task: Task | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def is_busy(self) -> bool:
        return self.turn.locked()

    def save(self) -> None:
        """Raises NamespaceError."""
        try:
            write_conversation(self.folder, self.record)
        except OSError as error:
            raise NamespaceError(f"{self.folder} cannot be written: {error.strerror}") from error

    def check_free(self, where: str) -> None:
        """Raises SessionBusy."""
        if self.is_busy:
            raise SessionBusy(f"{where}: a message of the session {self.id} is being answered")

    @contextmanager
    def store(self) -> Iterator[FileContext]:
        """Its conversation, held for a change. Raises ContextError."""
        store = FileContext(self.folder)
        try:
            with store.lock("a script"):
                yield store
        finally:
            store.close()


class OpenSessions:
    """All of them. One object a session of cru."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.folder = parts.store.folder / FOLDER
        self._open: dict[str, OpenSession] = {}
        self._main = SessionFeed(parts.store.session_id)
        self._follows_main = False

    def is_main(self, session_id: object) -> bool:
        """Whether an id means the session that scripts run in; nil does."""
        return session_id is None or session_id in ("", self.parts.store.session_id, self.parts.store.name)

    def add(self, record: ConversationRecord) -> OpenSession:
        """Raises NamespaceError if it cannot be kept."""
        session = self._open[record.id] = OpenSession(record, self.folder / record.id, SessionFeed(record.id))
        session.save()
        return session

    def find(self, where: str, session_id: object) -> OpenSession:
        """Raises NoSuchSession."""
        name = text(where, "session_id", session_id)
        if name not in self._open:
            record = read_conversation(self.folder / name) if _is_plain(name) else None
            if record is None:
                raise NoSuchSession(f"{where}: there is no session `{name}`", "cru.sessions.list() has all")
            self._open[name] = OpenSession(record, self.folder / name, SessionFeed(name))
        return self._open[name]

    def feed_of(self, where: str, session_id: object) -> SessionFeed:
        """Raises NoSuchSession."""
        if not self.is_main(session_id):
            return self.find(where, session_id).feed
        if not self._follows_main:
            self._follows_main = True
            self._main.follow(self.parts.bus.stream)
        return self._main

    @contextmanager
    def reading(self, where: str, session_id: object) -> Iterator[ContextStore]:
        """The conversation of any session, to read. Raises NoSuchSession, ContextError."""
        if self.is_main(session_id):
            yield self.parts.store
            return
        store = FileContext(self.find(where, session_id).folder)
        try:
            yield store
        finally:
            store.close()

    async def begin(self, where: str, session: OpenSession, prompt: str, reader: EventReader | None = None) -> Task:
        """Ask its agent as soon as what was asked before is answered; the session is free again when the task is over. `reader` hears of
        this message and nothing else. Raises NamespaceError, and what `start_agent` does."""
        await session.turn.acquire()
        if reader is not None:
            session.feed.add(reader, "")  # no plugin's: `unsubscribe` does not end it
        try:
            session.record.used = time.time()
            session.save()
            task = session.task = await self._start(where, session, prompt)
        except BaseException:
            self._end_turn(session, reader)
            raise
        agent_tasks(self.parts.tool_services).manager.when_over(task, lambda: self._end_turn(session, reader))
        return task

    @staticmethod
    def _end_turn(session: OpenSession, reader: EventReader | None) -> None:
        if reader is not None:
            session.feed.close(reader=reader)
        session.turn.release()

    async def _start(self, where: str, session: OpenSession, prompt: str) -> Task:
        record = session.record
        if record.state is not ConversationState.ACTIVE:
            raise NamespaceError(f"{where}: the session {session.id} is {record.state.value}")
        parts = host().parts  # the message is that of the agent in whose call it is sent
        tasks = agent_tasks(parts.tool_services)
        card = tasks.cards().find(record.agent)
        fields = {"agent": card.name, "prompt": prompt, "model": record.model, "tools": record.tools}
        request = await decide(parts, make_request(where, fields))
        if request.agent != card.name:
            raise Refused(f"{where}: a hook has named another agent, {request.agent}; a session keeps its own")
        return await tasks.start_agent(
            record.card(card), request, conversation=AgentConversation(session.id, session.feed.follow)
        )


def _is_plain(name: str) -> bool:
    """Whether it is the name of a folder, and no way to another place."""
    return name.isalnum() and name.isascii()


def open_sessions() -> OpenSessions:
    """Those of this session: plugins and functions of hooks share them."""
    parts = host().session.parts
    known = parts.services.script_sessions
    if not isinstance(known, OpenSessions):
        known = parts.services.script_sessions = OpenSessions(parts)
    return known


def check_script_session(where: str, session_id: object) -> OpenSession:
    """A session that a script has opened. Raises NoSuchSession, and BadArgument for the one it runs in."""
    sessions = open_sessions()
    if sessions.is_main(session_id):
        raise BadArgument(f"{where}: only a session that a script has opened", "this one belongs to the person")
    return sessions.find(where, session_id)
