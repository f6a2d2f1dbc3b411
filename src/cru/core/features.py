"""THE table of features: what each folder of cru.features brings, and when. Nothing of a feature is loaded before it is used.

To take a feature away, delete its folder and its row. Without its folder alone, whatever asks for it says whose it was.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from cru.core.base.values.errors import CruError
from cru.core.turn.commands import CommandRow

if TYPE_CHECKING:
    from cru.core.turn.parts import Parts

PACKAGE = "cru.features."


class FeatureMissing(CruError):
    """Something is asked for that belongs to a feature whose folder is not there."""

    def __init__(self, name: str, asked: str) -> None:
        super().__init__(
            f"{asked} belongs to the feature {name}, which this cru does not have", "install cru with all its features"
        )


class SessionPart(Protocol):
    """What a feature brings to one session.

    readable: folders outside of the project that the model may read as it reads the project
    """

    @property
    def readable(self) -> tuple[Path, ...]: ...

    def secrets(self, env: Mapping[str, str]) -> Iterable[str]:
        """What no record of the session may show."""
        ...

    def join(self, parts: "Parts") -> None: ...


class Feature(Struct, frozen=True):
    """One folder of cru.features. Targets are `module:name` below that folder.

    settings: its tables of config.toml, with their structs
    files: names in cru's home and in the project that make it join a session, as a table of its settings does
    part: finds what joins a session: a function (Start, Settings) -> SessionPart | None
    saved: keys of plugins' saved state begin with it: the function gets the Parts and sees that what was saved holds
    names, values, keyed: of the namespace; see NAMES, CONSTANTS and INDEXED in core/api/names.py
    commands: what is typed behind a slash; `work` and `complete` of a row are targets
    """

    name: str
    settings: Mapping[str, str] = {}
    files: tuple[str, str] = ("", "")
    part: str = ""
    saved: Mapping[str, str] = {}
    names: Mapping[str, str] = {}
    values: Mapping[str, str] = {}
    keyed: Mapping[str, str] = {}
    commands: tuple[CommandRow, ...] = ()

    def is_there(self) -> bool:
        """Whether its folder is."""
        return find_spec(f"{PACKAGE}{self.name}") is not None

    def target(self, place: str) -> str:
        """The full target of one that is below the folder."""
        return f"{PACKAGE}{self.name}{'' if place.startswith(':') else '.'}{place}"


NOTES = "list_ get search outlinks backlinks neighbors create_note"
OQ = "parse parse_as json json_pretty yaml toml toon convert detect query format"
STORED_GRAPH = "note_get note_list db_find db_outlinks db_inlinks db_neighbors db_query fast_outlinks fast_backlinks fast_neighbors"

FEATURES = (
    Feature(
        "vault", settings={"vault": ":VaultTable"}, part="session:find_vault",
        names={
            **{f"graph.{name}": f"graph.tables:{name}" for name in ("find", "outlinks", "inlinks")},
            **{f"graph.{name}": f"graph_api:{name}" for name in STORED_GRAPH.split()},
            "search": "api:search", "paths.kiln": "api:kiln",
            **{f"{family}.{name.rstrip('_')}": f"api:{name}" for family in ("vault", "kiln") for name in NOTES.split()},
        },
        keyed={"vault": "api:key", "kiln": "api:key"},
        commands=(
            CommandRow(
                "vault", "the notes: how many, search them, show one, its links (cru vault)", "commands:vault",
                "[search words | read note | links note]", reads=True,
            ),
        ),
    ),
    Feature(
        "mcp", settings={"mcp": ":McpTable"}, files=("mcp.json", ".mcp.json"), part="session:find_servers",
        names={f"mcp.{name}": f"api:{name}" for name in ("servers", "list_tools", "has_tool", "call", "call_json")},
        commands=(
            CommandRow(
                "mcp", "the MCP servers of this session: state, tools, prompts, resources (cru mcp)", "commands:mcp",
                "[tools | prompts | resources | restart name]", at_once=True,
            ),
        ),
    ),
    Feature(
        "formats", names={f"oq.{name}": f"oq:{name}" for name in OQ.split()},
        values={"oq.null": "oq:NULL"},
    ),
    Feature(
        "workflows", saved={"fsm:": "workflows:bind_saved_runs"},
        names={f"fsm.{name.rstrip('_')}": f"api:{name}" for name in ("define", "list_", "status", "start", "to", "stop")},
    ),
    Feature("fleet"),
)  # fmt: skip


def load_target(target: str) -> Any:
    """The function or value at `package.module:name`. Raises FeatureMissing."""
    module, _, name = target.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        feature, _, _ = module.removeprefix(PACKAGE).partition(".")
        if module.startswith(PACKAGE) and error.name == f"{PACKAGE}{feature}":
            raise FeatureMissing(feature, f"`{name.strip('_')}`") from error
        raise
