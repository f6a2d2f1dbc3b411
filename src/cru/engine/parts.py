"""What the engine works with. The composition root fills it; no engine function ever sees the session or a face."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from cru.contexts.store import ContextStore
from cru.engine.commands import Commands
from cru.engine.history import History
from cru.engine.recorder import Recorder
from cru.engine.settings import EngineSettings
from cru.events.bus import Bus
from cru.models.protocol import Model
from cru.permissions.asker import Asker
from cru.permissions.gate import Gate
from cru.tools.registry import ToolRegistry as Tools
from cru.tools.settings import ToolSettings
from cru.values.messages import Span

ModelChooser = Callable[[str], Awaitable["ResolvedModel"]]


class ResolvedModel(Struct, frozen=True):
    """A model ready to be asked, its parameters, its window in tokens (0 = unknown), its address for the trace."""

    model: Model
    parameters: dict[str, Any]
    window: int = 0
    base_url: str = ""


class SectionSource(Protocol):
    """Gives the sections of the system prompt; called once a leg."""

    def __call__(self) -> tuple[Span, ...]: ...


class Parts(Struct):
    """bus: the agent's bus · store: the context · choose: a model by name ("" = the configured one), made when first needed ·
    tools, gate, asker: hands and their leave · recorder: the trace · root: project root · env: environment of children ·
    sections: the system prompt · services: what built-in tools borrow · username: who prompts · parent: the context of the run that
    started this one, if one did · offer_tools: whether tools go into requests (None = as the model's adapter likes) · opening, closing:
    what happens before `session:started` and after `session:ended` (plugins are loaded and unloaded there) · between: what happens while
    idle, before something is taken from the queue (changed plugins are loaded anew) · commands: what `/name` may be."""

    bus: Bus
    store: ContextStore
    choose: ModelChooser
    tools: Tools
    gate: Gate
    asker: Asker
    recorder: Recorder
    settings: EngineSettings
    tool_settings: ToolSettings
    root: Path
    env: Mapping[str, str]
    sections: SectionSource
    history: History
    services: dict[str, Any]
    username: str = "user"
    parent: str = ""
    offer_tools: bool | None = None
    compaction_prompt: str = ""
    opening: list[Callable[[Parts], Awaitable[None]]] = field(default_factory=list)
    closing: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)
    between: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)
    commands: Commands = field(default_factory=Commands)

    def offers_tools(self, voice: ResolvedModel) -> bool:
        """Whether tools go into requests to this model: as the settings say, else as its adapter likes."""
        if self.settings.no_tool_calls:
            return False
        if self.offer_tools is not None:
            return self.offer_tools
        return bool(getattr(voice.model, "tools_by_default", True))
