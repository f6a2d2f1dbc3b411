"""What a login gave: kept in cru's home, readable by its owner only."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct

from cru.files.atomic import replace_file
from cru.files.regular import read_regular

if TYPE_CHECKING:
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

FOLDER = "mcp_tokens"
"""Below cru's home."""


class StoredLogin(Struct, frozen=True, omit_defaults=True):
    """url: of the server; port: at which the answer of the login was awaited; the rest is the SDK's"""

    url: str
    port: int = 0
    tokens: Raw | None = None
    client: Raw | None = None


class TokenStore:
    """The SDK's TokenStorage for one server at one address. A file that cannot be read counts as no login."""

    def __init__(self, home: Path, name: str, url: str) -> None:
        digest = sha256(f"{name}\0{url}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
        self._path = home / FOLDER / f"{digest}.json"
        self._url = url

    def load(self) -> StoredLogin:
        try:
            stored = msgspec.json.decode(read_regular(self._path), type=StoredLogin)
        except (OSError, msgspec.MsgspecError):
            return StoredLogin(self._url)
        return stored if stored.url == self._url else StoredLogin(self._url)

    def remember_port(self, port: int) -> None:
        """Another port than before means another registration. Raises OSError."""
        if self.load().port != port:
            self._save(StoredLogin(self._url, port))

    def forget(self) -> bool:
        """Whether there was a login. Raises OSError."""
        known = self._path.exists()
        self._path.unlink(missing_ok=True)
        return known

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthToken

        raw = self.load().tokens
        return None if raw is None else OAuthToken.model_validate_json(bytes(raw))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        stored = self.load()
        raw = Raw(tokens.model_dump_json(exclude_none=True).encode())
        self._save(StoredLogin(self._url, stored.port, raw, stored.client))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull

        raw = self.load().client
        return None if raw is None else OAuthClientInformationFull.model_validate_json(bytes(raw))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        stored = self.load()
        raw = Raw(client_info.model_dump_json(exclude_none=True).encode())
        self._save(StoredLogin(self._url, stored.port, stored.tokens, raw))

    def _save(self, stored: StoredLogin) -> None:
        replace_file(self._path, msgspec.json.encode(stored), make_folders=True, keep_mode=False)
