"""Files of a project that something runs or obeys later without asking: an editor, a shell, git, a build service, the next agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cru.core.base.files import is_inside
from cru.core.guard.places.git_runs import git_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cru.core.guard.rules.paths import JudgedCall, PathRoots, ResolvedPath

_SHELL = "a shell runs it when somebody comes into the folder"
_EDITOR = "an editor that opens the folder runs what it says"
_GIT = "git runs what it says"
_VERSIONS = "a version control program runs what its settings say"
_BUILD = "a build service runs it"
_GUIDE = "agents follow it"
_SERVERS = "agents start the servers that it names"
_PACKAGES = "it says where packages come from"

_WORKSPACE = ".code-workspace"

# Names, or `folder/name`, whatever their letters' case.
ASKED = {
    ".mise": _SHELL, ".mise.local.toml": _SHELL, "mise.local.toml": _SHELL, ".config/mise": _SHELL, ".config/mise.toml": _SHELL,
    ".dir-locals-2.el": _EDITOR, ".aider.conf.yml": _GUIDE, ".amazonq": _GUIDE, ".augment": _GUIDE, ".continuerc.json": _GUIDE,
    ".factory": _GUIDE, ".github/agents": _GUIDE, ".github/hooks": _GUIDE, ".junie": _GUIDE, ".kilocode": _GUIDE, ".kiro": _GUIDE,
    ".openhands": _GUIDE, ".pi": _GUIDE, ".qwen": _GUIDE, ".roo": _GUIDE, "opencode.jsonc": _GUIDE,
    ".envrc": _SHELL, ".autoenv": _SHELL, ".mise.toml": _SHELL, "mise.toml": _SHELL, ".exrc": _EDITOR, ".nvim.lua": _EDITOR,
    ".nvimrc": _EDITOR, ".vimrc": _EDITOR, ".lvimrc": _EDITOR, ".dir-locals.el": _EDITOR, ".vscode": _EDITOR, ".idea": _EDITOR,
    ".fleet": _EDITOR, ".zed": _EDITOR, ".devcontainer": _EDITOR, ".devcontainer.json": _EDITOR,
    ".hg": _VERSIONS, ".jj": _VERSIONS, ".sl": _VERSIONS, ".pijul": _VERSIONS, "_darcs": _VERSIONS,
    ".husky": _GIT, ".githooks": _GIT, ".pre-commit-config.yaml": _GIT, "lefthook.yml": _GIT, ".lefthook.yml": _GIT,
    "lefthook.yaml": _GIT, ".gitmodules": _GIT, ".gitattributes": _GIT, ".github/workflows": _BUILD, ".github/actions": _BUILD,
    ".gitea/workflows": _BUILD, ".forgejo/workflows": _BUILD, ".gitlab-ci.yml": _BUILD, ".circleci": _BUILD, ".travis.yml": _BUILD,
    ".woodpecker.yml": _BUILD, ".drone.yml": _BUILD, "jenkinsfile": _BUILD, "azure-pipelines.yml": _BUILD,
    "bitbucket-pipelines.yml": _BUILD, ".buildkite": _BUILD, "agents.md": _GUIDE, "agents.override.md": _GUIDE, "claude.md": _GUIDE,
    "claude.local.md": _GUIDE, "gemini.md": _GUIDE, "crush.md": _GUIDE, ".agents": _GUIDE, ".cursor": _GUIDE,
    ".cursorrules": _GUIDE, ".windsurf": _GUIDE, ".windsurfrules": _GUIDE, ".clinerules": _GUIDE, ".continue": _GUIDE,
    ".opencode": _GUIDE, "opencode.json": _GUIDE, ".github/copilot-instructions.md": _GUIDE, ".github/instructions": _GUIDE,
    ".mcp.json": _SERVERS, "mcp.json": _SERVERS, ".npmrc": _PACKAGES, ".yarnrc": _PACKAGES, ".yarnrc.yml": _PACKAGES,
    ".pnpmfile.cjs": _PACKAGES, ".cargo": _PACKAGES, "pip.conf": _PACKAGES,
}  # fmt: skip
"""What is asked about, and why."""

NOTED = {
    "makefile": "make", "gnumakefile": "make", "package.json": "npm", "justfile": "just", "taskfile.yml": "task", "rakefile": "rake",
    "setup.py": "pip", "pyproject.toml": "pip", "conftest.py": "pytest", "noxfile.py": "nox", "tox.ini": "tox", "build.rs": "cargo",
    "build.gradle": "gradle", "build.gradle.kts": "gradle", "pom.xml": "mvn", "dockerfile": "docker", "compose.yaml": "docker",
    "docker-compose.yml": "docker", "vagrantfile": "vagrant", "gemfile": "bundle",
}  # fmt: skip
"""What belongs to everyday work: the program that runs what such a file says is told."""

REFLECTION = "update_reflection"


def why_asked(special: str) -> str:
    """What makes changing a file with this special name a question of its own."""
    return ASKED.get(special, _EDITOR if special.endswith(_WORKSPACE) else _GIT)


def special_name(path: ResolvedPath, places: PathRoots) -> str:
    """What of this path makes it one of `ASKED`, or the place below the root in which git runs or obeys it; "" if nothing does."""
    for spelling in (path.real, path.lexical):
        names = _inner_names(spelling, places)
        for at, name in enumerate(names):
            if name in ASKED or name.endswith(_WORKSPACE):
                return name
            pair = "/".join(names[at : at + 2])
            if pair in ASKED:
                return pair
    return next((place for root in places.roots if (place := git_runs(path.real, root))), "")


def note_on(call: JudgedCall, mode: str) -> Iterator[str]:
    """What a person is told of a call that the mode allows."""
    if call.tool == REFLECTION:
        yield "the model changes its reflection, which is part of the system prompt of all contexts (`cru -n reflection` shows it)"
    for path in call.paths if mode == "auto" else ():
        program = NOTED.get(path.real.rpartition("/")[2].casefold())
        if program is not None and path.access == "write":
            yield f"the model may change {path.text} in auto mode; what it says runs with the next `{program}`"


def _inner_names(path: str, places: PathRoots) -> list[str]:
    for root in (*places.roots, places.copy, places.copy_of):
        if root and is_inside(path, root):
            return [name for name in path[len(root.rstrip("/")) :].casefold().split("/") if name]
    return []
