"""What looks like a secret is not shown: of records, and of a call that a person is asked about."""

from __future__ import annotations

import re

# What looks like a secret: a prefix that stays readable, and what is hidden.
SECRETS = re.compile(
    r"""(\b(?:sk-|ghp_|gho_|ghs_|github_pat_|xox[abprs]-|AKIA|glpat-))[A-Za-z0-9_-]{8,}
    |((?i:\bbearer)\s+)[A-Za-z0-9._~+/=-]{8,}
    |((?i:password|passwd|secret|token|api[_-]?key)\\*["']?\s*[=:]\s*\\*["']?)(?!\[secret\])[^\s"',;&}\\]{3,}""",
    re.VERBOSE,
)


def masked(text: str) -> str:
    """The text without what looks like a secret. Records themselves are whole, but for the keys that cru knows."""
    return SECRETS.sub(lambda match: f"{match[1] or match[2] or match[3]}[hidden]", text)
