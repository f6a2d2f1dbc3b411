"""What a login gave: kept in cru's home, readable by its owner only."""

from __future__ import annotations

import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.files import read_json
from cru.core.base.files.atomic import replace_file

if TYPE_CHECKING:
    from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken

FOLDER = "mcp_tokens"
"""Below cru's home."""


class StoredLogin(Struct, frozen=True, omit_defaults=True):
    """What is kept of a login; the rest is the SDK's.

    url: of the server
    port: at which the answer of the login was awaited
    at: when the tokens came, in seconds since 1970
    authority: where tokens are renewed
    """

    url: str
    port: int = 0
    at: float = 0.0
    tokens: dict[str, Any] | None = None
    client: dict[str, Any] | None = None
    authority: dict[str, Any] | None = None

    @property
    def expiry(self) -> float | None:
        """When the access token ends, in seconds since 1970; None: nobody knows."""
        seconds = (self.tokens or {}).get("expires_in")
        return self.at + seconds if isinstance(seconds, int | float) else None


class TokenStore:
    """The SDK's TokenStorage for one server at one address. A file that cannot be read counts as no login."""

    def __init__(self, home: Path, name: str, url: str) -> None:
        digest = sha256(f"{name}\0{url}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
        self._path = home / FOLDER / f"{digest}.json"
        self._url = url

    def load(self) -> StoredLogin:
        try:
            stored = read_json(self._path, StoredLogin)
        except (OSError, msgspec.MsgspecError):
            return StoredLogin(self._url)
        return stored if stored.url == self._url else StoredLogin(self._url)

    def remember_port(self, port: int) -> None:
        """Another port than before means another registration. Raises OSError."""
        if self.load().port != port:
            self._save(StoredLogin(self._url, port))

    def remember_authority(self, metadata: OAuthMetadata | None) -> None:
        """Where tokens are renewed. Raises OSError."""
        if metadata is not None:
            self._save(replace(self.load(), authority=metadata.model_dump(mode="json", exclude_none=True)))

    def forget(self) -> bool:
        """Whether there was a login. Raises OSError."""
        known = self._path.exists()
        self._path.unlink(missing_ok=True)
        return known

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthToken

        known = self.load().tokens
        return None if known is None else OAuthToken.model_validate(known)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        stored = self.load()
        fresh = tokens.model_dump(mode="json", exclude_none=True)
        self._save(replace(stored, at=time.time(), tokens=fresh))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull

        known = self.load().client
        return None if known is None else OAuthClientInformationFull.model_validate(known)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        stored = self.load()
        fresh = client_info.model_dump(mode="json", exclude_none=True)
        self._save(replace(stored, client=fresh))

    def _save(self, stored: StoredLogin) -> None:
        replace_file(self._path, msgspec.json.encode(stored), make_folders=True, keep_mode=False)
