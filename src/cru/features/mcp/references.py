"""`${NAME}` and `${NAME:-default}` in the texts of a server: secrets stay in the environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from cru.core.base.config.secret import secrets_in_url
from cru.features.mcp import BadServer, McpServer

_REFERENCE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_SECRET_NAME = re.compile(r"key|token|secret|password|passwd|auth|credential|cookie", re.IGNORECASE)


class Expansion(Struct):
    """Replaces references by what stands in the environment.

    secrets: what must not be shown: values of variables, and what stands openly under a name that sounds secret
    """

    env: Mapping[str, str]
    secrets: set[str] = field(default_factory=set)

    def text(self, text: str) -> str:
        """Raises BadServer for a variable that is not set and has no default."""
        return _REFERENCE.sub(self._value, text)

    def table(self, table: Mapping[str, str]) -> dict[str, str]:
        out = {name: self.text(text) for name, text in table.items()}
        self.secrets.update(value for name, value in out.items() if value and _SECRET_NAME.search(name))
        return out

    def _value(self, match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        value = self.env.get(name, "")
        if value:
            self.secrets.add(value)
            return value
        if default is None:
            raise BadServer(
                f"the variable {name} is not set", f"export {name}=…, or write ${{{name}:-}} if it may be empty"
            )
        return default


def expand(server: McpServer, env: Mapping[str, str]) -> tuple[McpServer, set[str]]:
    """The server with its references replaced, and what of it must not be shown. Raises BadServer."""
    expansion = Expansion(env)
    expanded = replace(
        server, command=expansion.text(server.command), args=tuple(map(expansion.text, server.args)),
        env=expansion.table(server.env), cwd=expansion.text(server.cwd), url=expansion.text(server.url),
        headers=expansion.table(server.headers),
    )  # fmt: skip
    return expanded, {secret for secret in (*expansion.secrets, *secrets_in_url(expanded.url)) if len(secret) > 3}


def find_secrets(servers: Iterable[McpServer], env: Mapping[str, str]) -> set[str]:
    """What must not be shown of any of these."""
    secrets: set[str] = set()
    for server in servers:
        try:
            secrets |= expand(server, env)[1]
        except BadServer:  # told when it is to be started
            continue
    return secrets
