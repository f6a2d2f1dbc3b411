"""The small server behind a login, and the login itself: `login_server.py PORT_FILE`. It takes any person, at once."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

sys.argv, PORT_FILE = [sys.argv[0], *sys.argv[2:]], Path(sys.argv[1])
sys.path.insert(0, str(Path(__file__).parent))

import server  # noqa: E402

TOKENS: dict[str, str] = {}
CODES: dict[str, str] = {}


class LoginHandler(server.Handler):
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def json(self, status: int, value: dict[str, Any]) -> None:
        self._end(status, json.dumps(value).encode(), {"content-type": "application/json"})

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path.startswith("/.well-known/oauth-protected-resource"):
            return self.json(200, {"resource": f"{self.base()}/mcp", "authorization_servers": [self.authority()]})
        if url.path.startswith("/.well-known/oauth-authorization-server"):
            return self.json(200, {
                "issuer": self.base(), "authorization_endpoint": f"{self.base()}/authorize", "token_endpoint": f"{self.base()}/token",
                "registration_endpoint": f"{self.base()}/register", "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
            })  # fmt: skip
        if url.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(url.query).items()}
            CODES["code-1"] = asked["code_challenge"]
            answer = {"error": "access_denied"} if "refuse" in server.OPTIONS else {"code": "code-1"}
            return self._end(
                302, b"", {"location": f"{asked['redirect_uri']}?{urlencode({**answer, 'state': asked['state']})}"}
            )
        return super().do_GET()

    def authority(self) -> str:
        return server.OPTIONS.get("authority", self.base())

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        if path == "/mcp":
            if self.headers.get("authorization", "").removeprefix("Bearer ") in TOKENS:
                return super().do_POST()
            self.rfile.read(int(self.headers["content-length"]))
            where = f'Bearer resource_metadata="{self.base()}/.well-known/oauth-protected-resource/mcp"'
            return self._end(401, b"", {"www-authenticate": where})
        body = self.rfile.read(int(self.headers["content-length"]))
        if path == "/register":
            return self.json(201, {**json.loads(body), "client_id": "client-1", "token_endpoint_auth_method": "none"})
        asked = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if asked["grant_type"] == "authorization_code":
            digest = (
                base64.urlsafe_b64encode(hashlib.sha256(asked["code_verifier"].encode()).digest()).decode().rstrip("=")
            )
            if CODES.get(asked["code"]) != digest:
                return self.json(400, {"error": "invalid_grant"})
        TOKENS[f"secret-access-{len(TOKENS)}"] = "x"
        lasting = int(server.OPTIONS.get("expires", 3600))
        return self.json(200, {
            "access_token": [*TOKENS][-1], "token_type": "Bearer", "expires_in": lasting, "refresh_token": "secret-refresh",
        })  # fmt: skip


if __name__ == "__main__":
    listening = ThreadingHTTPServer(("127.0.0.1", 0), LoginHandler)
    PORT_FILE.write_text(str(listening.server_address[1]))
    listening.serve_forever()
