"""What may go wrong with `cru mcp serve`."""

from __future__ import annotations

from cru.core.base.values.errors import CruError


class ServeError(CruError):
    """The server cannot be started."""
