"""`cru mcp`: the MCP servers that are configured, here or for other programs; whether they work, and what they offer (docs/mcp.md)."""

from __future__ import annotations

from collections.abc import Callable

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.mcp import display, judge, probe
from cru.faces.cli.mcp.edit import add, remove
from cru.faces.cli.mcp.serve import serve
from cru.faces.cli.mcp.servers import KnownServers, load_servers

HELP = """\
cru mcp [list]              all servers, how their last start went, where they stand (--json)
cru mcp add NAME -- PROGRAM ARGS…      a server that is started here: -e NAME=VALUE (repeatable), --cwd FOLDER
cru mcp add NAME URL                   one that runs elsewhere (or --url URL): --header 'NAME: VALUE' (repeatable)
                            -s project writes into this project's .cru/config.toml instead of your own settings
cru mcp remove NAME         take it out of the settings (-s project)
cru mcp test [NAME]         start it, say what it offers and how long that took, or why it does not work
cru mcp tools NAME          its tools, as the model sees them (--json)
cru mcp accept NAME         use a server of another program's settings (Claude Code, Crush, Codex, Gemini CLI); --all: each that waits
cru mcp reject NAME         do not use it, and say no more about it
cru mcp serve               let other agents use cru's tools (cru mcp serve --help)
cru mcp login NAME          log in at a server that asks for it; logout forgets that
Secrets stay in the environment: -e TOKEN='${GITHUB_TOKEN}'.
"""
VERBS = ("list", "add", "remove", "test", "tools", "accept", "reject", "login", "logout", "serve")
NAMED = ("remove", "tools", "login", "logout")
"""Verbs that need a name."""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    if words[:1] == ("add",):
        return add(parsed, words[1:], HELP)
    if words[:1] == ("serve",):
        return serve(parsed, words[1:])
    args = CommandArguments("mcp", words, help=HELP, switches=("--json", "--all"), values=("-s",), verbs=VERBS, most=2)
    if args.show_help():
        return 0
    verb, name = (*args.words, "", "")[:2]
    if verb in NAMED and not name:
        raise UsageProblem(f"`cru mcp {verb}` needs the name of a server", "cru mcp says which there are")
    servers = load_servers(parsed)
    if verb == "remove":
        return remove(servers, name, args.value("-s", ""))
    return _verb(verb)(servers, name, args)


def _verb(verb: str) -> Callable[[KnownServers, str, CommandArguments], int]:
    table: dict[str, Callable[[KnownServers, str, CommandArguments], int]] = {
        "test": probe.test, "tools": probe.tools, "login": probe.login, "logout": probe.logout,
        "accept": judge.accept, "reject": judge.reject,
    }  # fmt: skip
    return table.get(verb, display.list_servers)
