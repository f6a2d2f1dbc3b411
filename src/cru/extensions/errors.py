"""What can go wrong with plugins.

ExtensionError
└── PluginFailed   a plugin could not be loaded; nothing of it stays
"""

from __future__ import annotations

from cru.values.errors import CruError


class ExtensionError(CruError):
    pass


class PluginFailed(ExtensionError):
    pass
