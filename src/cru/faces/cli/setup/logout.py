"""`cru logout`."""

from cru.faces.cli.setup.login import logout as command

__all__ = ["command"]
