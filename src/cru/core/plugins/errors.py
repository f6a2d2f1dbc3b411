"""What can go wrong with plugins.

ExtensionError
├── PluginFailed   a plugin could not be loaded; nothing of it stays
├── BadManifest    a manifest that cannot be read or breaks a rule
├── CommandFailed  a plugin's command failed, or said so
├── HookFailed     a hook of a program came to nothing
├── ViewFailed     a view could not be drawn, or a key of it failed (views.py)
├── UnknownPlugin  there is none of that name
├── PluginInUse    another plugin depends on it, or it is required
└── PluginMissing  a plugin that must run does not (exit 3)
"""

from __future__ import annotations

from cru.core.base.values.errors import CruError


class ExtensionError(CruError):
    pass


class PluginFailed(ExtensionError):
    pass


class BadManifest(ExtensionError):
    pass


class CommandFailed(ExtensionError):
    pass


class HookFailed(ExtensionError):
    pass


class UnknownPlugin(ExtensionError):
    pass


class PluginInUse(ExtensionError):
    pass


class PluginMissing(ExtensionError):
    code = 3
