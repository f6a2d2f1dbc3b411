"""Names of the tools of MCP servers. A tool is the pair (server, tool); here the pair is `mcp_<server>_<tool>`, in Claude Code and Codex
`mcp__<server>__<tool>`. Which part is which cannot be told from a name with more underscores, so pairs that were joined are known."""

from __future__ import annotations

import re

PREFIX = "mcp_"
LONGEST = 64
"""Characters that every provider takes."""
_UNUSABLE = re.compile(r"[^A-Za-z0-9_-]")
_PAIRS: dict[str, tuple[str, str]] = {}
"""Joined name → pair, as it was joined in this process. Two pairs may have one joined name: that of the tool which has it counts."""
_PREFIXES: set[str] = set()
"""Of all servers that had tools in this process."""


def server_prefix(server: str) -> str:
    """What the names of its tools begin with."""
    return f"{PREFIX}{_UNUSABLE.sub('_', server)}_"


def join_names(server: str, tool: str) -> str:
    """The name of a tool for the model, in letters that every provider takes; a long one ends with what tells it from others."""
    name = server_prefix(server) + _UNUSABLE.sub("_", tool)
    if len(name) > LONGEST:
        from hashlib import sha256

        digest = sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
        name = f"{name[: LONGEST - 9]}_{digest}"
    _PAIRS[name] = (server, tool)
    _PREFIXES.add(server_prefix(server))
    return name


def note_owner(name: str, server: str, tool: str) -> None:
    """Whose tool has this joined name now."""
    _PAIRS[name] = (server, tool)


def split_name(name: str) -> tuple[str, str] | None:
    """(server, tool) of a joined name, in either writing; None if it is none. Of one that was never joined here the server is what
    stands before the next underscore."""
    if name in _PAIRS:
        return _PAIRS[name]
    if name.startswith("mcp__"):
        server, mark, tool = name.removeprefix("mcp__").partition("__")
    else:
        server, mark, tool = name.removeprefix(PREFIX).partition("_")
    return (server, tool) if name.startswith(PREFIX) and mark and server and tool else None


def names_server(pattern: str, name: str) -> bool:
    """Whether a glob that matches a name of a tool means its server, too, and not one whose name begins the same: `mcp_git_*` is not about
    the server `git_x`, nor `mcp_git_x_*` about a tool `x_push` of `git` if there is a server `git_x`. True of a glob for every server, and
    where the name is no server's."""
    pair = split_name(name)
    head, star, _ = pattern.partition("*")
    if pair is None or not star or not head.startswith(PREFIX) or head == PREFIX:
        return True
    own = server_prefix(pair[0])
    return head.startswith(own) and not any(len(prefix) > len(own) and head.startswith(prefix) for prefix in _PREFIXES)


def plain_text(written: str) -> str:
    """A name or a glob of names in the letters of joined names: `mcp__my.server__*` is about `mcp_my_server_…`."""
    return re.sub(r"[^A-Za-z0-9_*-]", "_", written)


def whole_names(name: str) -> tuple[str, ...]:
    """How a rule may write this tool of a server: its server alone, and both writings, not shortened."""
    pair = split_name(name)
    if pair is None:
        return ()
    server, tool = map(plain_text, pair)
    return (f"mcp__{server}", f"mcp__{server}__{tool}", f"{PREFIX}{server}_{tool}")


def double_name(name: str) -> str:
    """`mcp__<server>__<tool>` for a name of ours; the name itself if it is none."""
    pair = split_name(name)
    return name if pair is None else "__".join(("mcp", *(_UNUSABLE.sub("_", part) for part in pair)))


def own_name(name: str) -> str:
    """Our name for `mcp__<server>__<tool>`, and for `mcp__<server>` a glob of its tools; stars stay."""
    server, mark, tool = name.removeprefix("mcp__").partition("__")
    return f"{PREFIX}{server}_{tool if mark else '*'}"
