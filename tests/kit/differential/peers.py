"""The programs themselves, where they are installed ($BENCH_HOME, bench/install_peers.sh): how each is started, and its words for tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from tests.kit.differential.cases import Case
from tests.kit.differential.world import Naming
from tests.kit.home import HomeDir
from tests.kit.wire_peers import FREEFORM

NPM = Path(os.environ.get("BENCH_HOME") or Path.home() / ".cache" / "cru-bench") / "npm"


def _same(tool: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return tool, args


def _codex_tool(tool: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Hooks know one command tool; the model has another. `Write` is a patch that adds the file."""
    if tool == "Bash":
        return "exec_command", {"cmd" if name == "command" else name: value for name, value in args.items()}
    if tool == "apply_patch":
        return tool, {FREEFORM: args["command"]}
    return ("multi_agent_v1.spawn_agent" if tool == "spawn_agent" else tool), args


def _claude(case: Case, prompt: str, again: bool, url: str, project: Path) -> list[str]:
    leave = {"all": ["--dangerously-skip-permissions"], "ask": []}[case.mode]
    return ["-p", prompt, "--model", "claude-sonnet-4-5", *leave, *(["--continue"] if again else [])]


def _codex(case: Case, prompt: str, again: bool, url: str, project: Path) -> list[str]:
    provider = f'{{name="mock",base_url="{url}",wire_api="responses",env_key="MOCK_KEY"}}'
    settings = {
        "model": '"gpt-5.5"', "model_provider": '"mock"', "model_providers.mock": provider, "check_for_update_on_startup": "false",
        "analytics.enabled": "false", "otel.exporter": '"none"', "projects": f'{{"{project}"={{trust_level="trusted"}}}}',
    }  # fmt: skip
    flags = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    leave = {
        "all": ["--dangerously-bypass-approvals-and-sandbox"],
        "ask": ["-c", 'approval_policy="on-request"', "--sandbox", "read-only"],
    }[case.mode]
    resumed = ["resume", "--last"] if again else []
    return ["exec", *resumed, *flags, "--skip-git-repo-check", "--dangerously-bypass-hook-trust", *leave, prompt]


def _gemini(case: Case, prompt: str, again: bool, url: str, project: Path) -> list[str]:
    leave = {"all": ["-y"], "ask": []}[case.mode]
    return [*leave, "--skip-trust", "-m", "gemini-2.5-flash", "-p", prompt, *(["--resume", "latest"] if again else [])]


def _gemini_settings(here: HomeDir) -> None:
    """What keeps it quiet, where the system's settings are read from."""
    settings = {
        "privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "telemetry": {"enabled": False}, "security": {"auth": {"selectedType": "gemini-api-key"}},
    }  # fmt: skip
    (here.path / "system.json").write_bytes(msgspec.json.encode(settings))


class Peer(Struct, frozen=True):
    """How one program is played to.

    package: its folder below $BENCH_HOME/npm
    command: below node_modules/.bin there
    words: its arguments: the case, the prompt, whether the conversation goes on, the server, the project
    env: its variables; {url} is the server without /v1, {home} the home
    named: its tools in the words of its models
    prepared: what it needs in its home
    """

    package: str
    command: str
    words: Callable[[Case, str, bool, str, Path], list[str]]
    env: Mapping[str, str]
    named: Naming = _same
    prepared: Callable[[HomeDir], None] | None = None

    @property
    def program(self) -> Path:
        return NPM / self.package / "node_modules" / ".bin" / self.command


PEERS: dict[str, Peer] = {
    "claude": Peer(
        "claude", "claude", _claude,
        {"ANTHROPIC_API_KEY": "sk-ant-mock", "ANTHROPIC_BASE_URL": "{url}", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
         "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "IS_SANDBOX": "1"},
    ),
    "codex": Peer("codex", "codex", _codex, {"MOCK_KEY": "x"}, _codex_tool),
    "gemini": Peer(
        "gemini", "gemini", _gemini,
        {"GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true", "GOOGLE_GEMINI_BASE_URL": "{url}",
         "GEMINI_CLI_SYSTEM_SETTINGS_PATH": "{home}/system.json"},
        prepared=_gemini_settings,
    ),
}  # fmt: skip
"""By dialect. Crush is not among them: its package fetches the program from elsewhere."""
