"""What can go wrong with command hooks.

HookError
├── NoEntry       no hook of that id
├── BadHooks      a configuration cannot be used at all
├── Untrusted     --strict-hooks: hooks that a person has not accepted are in the way (exit 3)
├── SlowRegex     a search for a matcher's regular expression did not end in time
├── NoShell       no shell on this machine can run the command
└── BadScript     the file at a command's place cannot be run: what the hook then prints on standard error
"""

from __future__ import annotations

from cru.core.base.values.errors import CruError


class HookError(CruError):
    pass


class NoEntry(HookError):
    pass


class BadHooks(HookError):
    pass


class SlowRegex(HookError):
    pass


class Untrusted(HookError):
    code = 3


class NoShell(HookError):
    pass


class BadScript(HookError):
    pass
