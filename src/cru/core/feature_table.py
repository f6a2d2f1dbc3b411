"""THE table of features: what each folder of cru.features brings, and when. Nothing of a feature is loaded before it is used.

To take a feature away, delete its folder and its row. Without its folder alone, whatever asks for it says whose it was.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cru.core.base.values.errors import CruError
from cru.core.turn.commands import CommandRow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Protocol

    from cru.core.turn.parts import Parts

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


PACKAGE = "cru.features."


class FeatureMissing(CruError):
    """Something is asked for that belongs to a feature whose folder is not there."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"this belongs to the feature {name}, which this cru does not have", "install cru with all its features"
        )


class Feature(Struct, frozen=True):
    """One folder of cru.features. Targets are `module:name` below that folder.

    settings: its tables of config.toml, with their structs
    files: names in cru's home and in the project that make it join a session, as a table of its settings does; "" for none
    part: finds what joins a session: a function (Start, Settings) -> SessionPart | None
    saved: keys of plugins' saved state begin with it: the function gets the Parts and sees that what was saved holds
    names: of the namespace: families ("" for none), each with a module and its functions; one that ends with `_` has a name without
    values, keyed: of the namespace, too; see CONSTANTS and INDEXED in core/api/names.py
    commands: what is typed behind a slash; `work` and `complete` of a row are targets
    """

    name: str
    settings: Mapping[str, str] = {}
    files: tuple[str, str] = ("", "")
    part: str = ""
    saved: Mapping[str, str] = {}
    names: tuple[tuple[str, str, str], ...] = ()
    values: Mapping[str, str] = {}
    keyed: Mapping[str, str] = {}
    commands: tuple[CommandRow, ...] = ()

    def is_there(self) -> bool:
        """Whether its folder is."""
        from importlib.util import find_spec

        return find_spec(f"{PACKAGE}{self.name}") is not None

    def target(self, place: str) -> str:
        """The full target of one that is below the folder."""
        return f"{PACKAGE}{self.name}{'' if place.startswith(':') else '.'}{place}"


_NOTES = "list_ get search outlinks backlinks neighbors create_note"

FEATURES = (
    Feature(
        "vault", settings={"vault": ":VaultTable"}, part="session:find_vault",
        names=(
            ("vault", "api", _NOTES), ("kiln", "api", _NOTES), ("", "api", "search"), ("paths", "api", "kiln"),
            ("graph", "graph.tables", "find outlinks inlinks"),
            (
                "graph", "graph_api",
                "note_get note_list db_find db_outlinks db_inlinks db_neighbors db_query fast_outlinks fast_backlinks fast_neighbors",
            ),
        ),
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
        names=(("mcp", "api", "servers list_tools has_tool call call_json"),),
        commands=(
            CommandRow(
                "mcp", "the MCP servers of this session: state, tools, prompts, resources (cru mcp)", "commands:mcp",
                "[tools | prompts | resources | restart name]", at_once=True,
            ),
        ),
    ),
    Feature(
        "formats", names=(("oq", "oq", "parse parse_as json json_pretty yaml toml toon convert detect query format"),),
        values={"oq.null": "oq:NULL"},
    ),
    Feature("workflows", saved={"fsm:": "workflows:bind_saved_runs"}, names=(("fsm", "api", "define list_ status start to stop"),)),
    Feature("fleet"),
)  # fmt: skip


def load_target(target: str) -> Any:
    """The function or value at `package.module:name`. Raises FeatureMissing."""
    module, _, name = target.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise missing_feature(error) or error from error


def missing_feature(error: BaseException) -> FeatureMissing | None:
    """What an import that failed means, if a feature's folder is not there."""
    module = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    name = module.removeprefix(PACKAGE)
    return (
        FeatureMissing(name) if module.startswith(PACKAGE) and name in [feature.name for feature in FEATURES] else None
    )
