"""The root of every error that a user may see. Each room derives its own tree from CruError.

CruError
├── ConfigError      (config)       ├── ContextError     (contexts)
├── NetError         (net)          ├── ModelError       (models)
├── EventError       (events)       ├── PermissionsError (permissions)
├── StartError       (process)      ├── ToolError        (tools)
├── EngineError      (engine)       ├── ExtensionError   (extensions)
├── NamespaceError   (namespace)    ├── HookError        (extensions/hooks)
├── CommandError     (commands)
└── VaultError       (vault)
"""

from __future__ import annotations


class CruError(Exception):
    """`message` says what is wrong, `hint` names the next step; `code` is the exit status of the command line."""

    code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class FeatureMissing(CruError):
    """Something is asked for that belongs to a feature whose folder is not there."""
