"""What decides whether a call may run, and where: the shell reader, places that git and links lead to, trust, rules, the sandbox.

What can go wrong with permissions themselves. A refused call is no error: it is a Verdict.
"""

from cru.core.base.values.errors import CruError


class PermissionsError(CruError):
    """PermissionsError
    ├── BadRule      a rule that cannot be read (also a ValueError, so that settings report its place)
    ├── UnknownMode  no such mode (exit 2; also a ValueError)
    ├── NotAccepted  a folder that cannot be trusted as a whole: a link leads out of it, …
    └── NotStored    grants.json or trust.json cannot be written, or is of a newer version
    """


class BadRule(PermissionsError, ValueError):
    pass


class UnknownMode(PermissionsError, ValueError):
    code = 2


class NotAccepted(PermissionsError):
    pass


class NotStored(PermissionsError):
    pass
