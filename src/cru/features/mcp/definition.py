"""A server as it is configured, wherever that stands."""

from __future__ import annotations

import re
from shlex import join

from msgspec import Struct

from cru.core.base.config.secret import mask_table, mask_url
from cru.features.mcp import BadServer, McpServer

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


class ServerDefinition(Struct, frozen=True):
    """One server.

    origin: file and line, or the layer, for people
    owner: whose file that is: "cru", or another program's name
    of_project: something of it stands in a file of the project
    """

    name: str
    server: McpServer
    origin: str = ""
    owner: str = "cru"
    of_project: bool = False

    @property
    def is_stdio(self) -> bool:
        return bool(self.server.command)

    def check(self) -> None:
        """Raises BadServer if it cannot be used."""
        where = f"mcp.servers.{self.name}"
        if not NAME.fullmatch(self.name):
            raise BadServer(f"{where}: a name is letters, digits, `_`, `-` and `.`")
        if bool(self.server.command) == bool(self.server.url):
            both = "both `command` and `url`" if self.server.command else "neither `command` nor `url`"
            raise BadServer(f"{where} has {both}", "a server is a program or an address")
        if self.server.url and not re.match(r"https?://[^/]|\$\{", self.server.url):
            raise BadServer(f"{where}.url must begin with http:// or https://")

    def describe(self) -> str:
        """What is started or asked, without secrets."""
        server = self.server
        if not self.is_stdio:
            return mask_url(server.url)
        variables = [f"{name}={value}" for name, value in mask_table(server.env).items()]
        return " ".join([*variables, join((server.command, *server.args))])
