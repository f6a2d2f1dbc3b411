"""The seconds that a plugin has to come, and to go."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from cru.extensions.discovery.files import DiscoveredPlugin
from cru.extensions.errors import PluginFailed
from cru.namespace.callbacks import report_failure
from cru.namespace.host import Host, call

SETUP_SECONDS = 10.0
"""Seconds for its code and its `setup`, unless `[plugins] setup_timeout` says otherwise."""
TEARDOWN_SECONDS = 5.0
"""Seconds for each of its functions that say good-bye."""


async def load_in_time(language: Any, found: DiscoveredPlugin, host: Host, config: Mapping[str, Any]) -> None:
    """Load it. Raises what the language raises, and PluginFailed if that takes too long; programs have limits of their own."""
    seconds = None if found.kind == "executable" else float(config.get("setup_timeout") or SETUP_SECONDS)
    try:
        async with asyncio.timeout(seconds) as clock:
            await language.load(found, host)
    except TimeoutError as error:
        if not clock.expired():
            raise
        raise PluginFailed(
            f"{found.files[0] if found.files else found.name}: it was not ready after {seconds:g} s",
            "what takes longer may go on beside everything else (cru.spawn), or give it more time: [plugins] setup_timeout",
        ) from error


async def call_in_time(host: Host, context: str, function: Any, *args: Any) -> None:
    """Call what takes something back. One that fails, or does not end, is reported."""
    try:
        async with asyncio.timeout(TEARDOWN_SECONDS) as clock:
            await call(function, *args)
    except TimeoutError as error:
        report_failure(
            host,
            TimeoutError(f"it took longer than {TEARDOWN_SECONDS:g} s and was ended") if clock.expired() else error,
            context,
        )
    except Exception as error:  # noqa: BLE001  the boundary around a plugin that goes: reported, the rest goes on
        report_failure(host, error, context)
