"""The TLS library seeds its random numbers at its first handshake, which takes longer (24 ms) than all else that TLS costs a start. Begun
early, on a thread of its own, it is done when the first request goes out."""

from __future__ import annotations

from threading import Thread

SECONDS = 1
"""For the handshake that nobody answers."""


def start_seeding() -> None:
    Thread(target=_begin_handshake, name="tls-seed", daemon=True).start()


def _begin_handshake() -> None:
    """Greet a socket of our own. What fails here fails at the first request too, and is told there.

    Nobody answers, so there is nothing to verify: what the system trusts is not read a second time (7 ms).
    """
    from datetime import timedelta
    from socket import create_server

    from pyreqwest.client import SyncClientBuilder

    try:
        with create_server(("127.0.0.1", 0)) as server:
            builder = SyncClientBuilder().no_proxy().danger_accept_invalid_certs(True)
            client = builder.timeout(timedelta(seconds=SECONDS)).build()
            client.get(f"https://127.0.0.1:{server.getsockname()[1]}/").build().send()
    except Exception as error:
        from pyreqwest.exceptions import PyreqwestError

        if not isinstance(error, OSError | PyreqwestError):
            raise
