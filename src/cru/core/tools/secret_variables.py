"""Secrets: variables with keys, which what the model runs gets only if the person says so, the hint where one of them may be missed, and
texts that are shown without what looks like a secret."""

from __future__ import annotations

import re

from msgspec import Struct

KEYS_OF_PROGRAMS: dict[str, tuple[str, ...]] = {
    "gh": ("GH_TOKEN", "GITHUB_TOKEN"), "hub": ("GITHUB_TOKEN",), "glab": ("GITLAB_TOKEN",),
    "aws": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    "sam": ("AWS_SECRET_ACCESS_KEY",), "cdk": ("AWS_SECRET_ACCESS_KEY",), "terraform": ("AWS_SECRET_ACCESS_KEY", "TFE_TOKEN"),
    "gcloud": ("GOOGLE_APPLICATION_CREDENTIALS",), "hf": ("HF_TOKEN",), "huggingface-cli": ("HF_TOKEN",),
    "npm": ("NPM_TOKEN", "NODE_AUTH_TOKEN"), "pnpm": ("NPM_TOKEN", "NODE_AUTH_TOKEN"), "yarn": ("NPM_TOKEN", "NODE_AUTH_TOKEN"),
    "twine": ("TWINE_PASSWORD",), "uv": ("UV_PUBLISH_TOKEN",), "cargo": ("CARGO_REGISTRY_TOKEN",), "wrangler": ("CLOUDFLARE_API_TOKEN",),
    "vercel": ("VERCEL_TOKEN",), "vault": ("VAULT_TOKEN",), "doctl": ("DIGITALOCEAN_ACCESS_TOKEN",),
}  # fmt: skip
"""What programs read without being told to."""
_WORDS = re.compile(r"[A-Za-z_][\w-]*")


class ToolVariables(Struct, frozen=True):
    """`[tools]`.

    env_pass: names of variables with keys that what the model runs gets all the same; `*` stands for any characters
    """

    env_pass: list[str] = []


class ToolsTable(Struct, frozen=True):
    """The settings of this module."""

    tools: ToolVariables = ToolVariables()


DOCS: dict[str, str] = {
    "tools": "what the model's commands get",
    "tools.env_pass": "variables with keys that what the model runs gets all the same, as `GITHUB_TOKEN` or `AWS_*` "
    "([keys](permissions.md#keys))",
}


def find_missed(command: str, output: str | None, names: frozenset[str]) -> list[str]:
    """Which of these a call may have missed. `output`: what it printed if it failed."""
    words = set(_WORDS.findall(command))
    if output is not None:
        words.update(name for program in words & KEYS_OF_PROGRAMS.keys() for name in KEYS_OF_PROGRAMS[program])
        words.update(_WORDS.findall(output))
    return sorted(words & names)


def tell_person(missed: list[str]) -> str:
    return (
        f"the model's commands do not get {', '.join(missed)}, since keys are none of theirs: your own `!command` does, and "
        f"{_setting(missed)} in config.toml passes them on"
    )


def tell_model(missed: list[str]) -> str:
    return (
        f"[{', '.join(missed)}: set where cru was started, but withheld from what you run, since keys are secret; only the user can pass "
        f"them on: {_setting(missed)} in their config.toml]"
    )


def _setting(missed: list[str]) -> str:
    listed = ", ".join(f'"{name}"' for name in missed)
    return f"`tools.env_pass = [{listed}]`"


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
