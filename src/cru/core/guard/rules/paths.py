"""A tool call, where its paths really lead, and which places are protected. Rules and the border of the project are judged on
both spellings of a path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.files import is_inside

if TYPE_CHECKING:
    from cru.core.guard.rules.command_matching import SearchedCommand
    from cru.core.guard.shell.analysis import CommandAnalysis

# Files and folders inside a project that decide what programs do, whatever their letters' case.
PROTECTED_NAMES = frozenset(
    {".git", ".cru", ".claude", ".codex", ".gemini", ".crush", "crush.json", ".crush.json", "crushrc", ".crushrc"}
)

# In the user's home: what a shell or a login starts with, and what says who may log in. A closing slash means a folder.
PROTECTED_AT_HOME = (
    ".claude/",
    ".codex/",
    ".config/crush/",
    ".gemini/",
    ".local/share/crush/",
    ".bashrc",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".config/autostart/",
    ".config/environment.d/",
    ".config/fish/",
    ".config/git/",
    ".config/systemd/",
    ".cshrc",
    ".gitconfig",
    ".kshrc",
    ".login",
    ".pam_environment",
    ".profile",
    ".tcshrc",
    ".xprofile",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "library/launchagents/",
)

# What lets its reader log in elsewhere: reading it needs a question too.
SECRET_AT_HOME = (
    ".aws/",
    ".azure/",
    ".boto",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".config/chromium/",
    ".config/crush/crush.json",
    ".config/doctl/",
    ".config/gcloud/",
    ".config/gh/",
    ".config/git/credentials",
    ".config/github-copilot/",
    ".config/glab-cli/",
    ".config/google-chrome/",
    ".config/hub",
    ".config/op/",
    ".config/rclone/",
    ".config/sops/",
    ".docker/",
    ".electrum/",
    ".fly/",
    ".gem/credentials",
    ".gemini/google_accounts.json",
    ".gemini/oauth_creds.json",
    ".git-credentials",
    ".gnupg/",
    ".huggingface/token",
    ".cache/huggingface/token",
    ".kaggle/",
    ".kube/",
    ".local/share/crush/",
    ".local/share/keyrings/",
    ".local/share/kwalletd/",
    ".local/share/opencode/auth.json",
    ".mozilla/",
    ".my.cnf",
    ".mylogin.cnf",
    ".netrc",
    ".npmrc",
    ".oci/",
    ".password-store/",
    ".pgpass",
    ".pi/agent/auth.json",
    ".pypirc",
    ".s3cfg",
    ".ssh/",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
    ".yarnrc.yml",
    "library/keychains/",
)

# Variables that put them elsewhere, and which files there are secret: "" is the place itself.
SECRET_VARIABLES = {
    "AWS_CONFIG_FILE": ("",),
    "AWS_SHARED_CREDENTIALS_FILE": ("",),
    "AZURE_CONFIG_DIR": ("",),
    "BOTO_CONFIG": ("",),
    "CARGO_HOME": ("credentials", "credentials.toml"),
    "CLAUDE_CONFIG_DIR": (".credentials.json", ".claude.json"),
    "CLOUDSDK_CONFIG": ("",),
    "CODEX_HOME": ("auth.json",),
    "CURL_HOME": (".netrc",),
    "DOCKER_CONFIG": ("",),
    "GH_CONFIG_DIR": ("",),
    "GLAB_CONFIG_DIR": ("",),
    "GNUPGHOME": ("",),
    "GOOGLE_APPLICATION_CREDENTIALS": ("",),
    "HF_HOME": ("token",),
    "HF_TOKEN_PATH": ("",),
    "KAGGLE_CONFIG_DIR": ("",),
    "KUBECONFIG": ("",),
    "MYSQL_TEST_LOGIN_FILE": ("",),
    "NETRC": ("",),
    "NPM_CONFIG_USERCONFIG": ("",),
    "OCI_CLI_CONFIG_FILE": ("",),
    "PASSWORD_STORE_DIR": ("",),
    "PGPASSFILE": ("",),
    "RCLONE_CONFIG": ("",),
    "SOPS_AGE_KEY_FILE": ("",),
    "TF_CLI_CONFIG_FILE": ("",),
    "npm_config_userconfig": ("",),
}
_MOVED_FOLDERS = {"XDG_CACHE_HOME": ".cache/", "XDG_CONFIG_HOME": ".config/", "XDG_DATA_HOME": ".local/share/"}

# The same on the whole machine: environments of running programs, and what is handed to containers.
SECRET_PLACES = ("/proc", "/etc/shadow", "/etc/gshadow", "/run/secrets", "/var/run/secrets")


class ResolvedPath(Struct, frozen=True):
    """A path that a call touches.

    access: read or write
    text: as the call names it
    lexical: absolute, links not followed
    real: resolved, missing parts too
    """

    access: Literal["read", "write"]
    text: str
    lexical: str
    real: str


class JudgedCall:
    """A tool call as rules see it. The command is read when the first rule wants to know.

    receiver: the running command that the detail is typed into, "" for a call of its own
    is_outside: it would run outside of the sandbox, which only rules that say so allow
    """

    __slots__ = ("_command", "_others", "_searched", "detail", "is_outside", "kind", "paths", "receiver", "tool")

    def __init__(
        self, tool: str, kind: str, detail: str, paths: tuple[ResolvedPath, ...] = (), receiver: str = ""
    ) -> None:
        self.tool = tool
        self.kind = kind
        self.detail = detail
        self.paths = paths
        self.receiver = receiver
        self.is_outside = False
        self._command: CommandAnalysis | None = None
        self._searched: SearchedCommand | None = None
        self._others: dict[str, JudgedCall] = {}

    @property
    def command(self) -> CommandAnalysis:
        if self._command is None:
            from cru.core.guard.shell.analysis import analyze

            self._command = analyze(self.detail)
            if self.receiver:  # who reads it may be no shell: every word of it may be a command
                self._command = replace(self._command, suspect=True)
        return self._command

    @property
    def searched(self) -> SearchedCommand:
        """The command as deny and ask rules look at it."""
        if self._searched is None:
            from cru.core.guard.rules.command_matching import SearchedCommand
            from cru.core.guard.shell.analysis import analyze
            from cru.core.guard.shell.simplify import simplify

            simplified = simplify(self.detail, "")
            form = analyze(simplified) if simplified else None
            self._searched = SearchedCommand(self.command, form, is_shell=not self.receiver)
        return self._searched

    def named(self, tool: str, detail: str) -> JudgedCall:
        """The same call under the name that rules for some uses of a tool have."""
        if tool not in self._others:
            self._others[tool] = JudgedCall(tool, self.kind, detail)
        return self._others[tool]

    @property
    def why_unsure(self) -> str:
        """What to add to the reason of a rule that hit only since the command is too long for all of them; "" if it is not."""
        calls = (self, *self._others.values())
        is_too_long = any(call._searched is not None and call._searched.is_too_long for call in calls)
        return " (the command is too long to be tried against every rule: make it shorter)" if is_too_long else ""


class PathRoots(Struct, frozen=True):
    """The folders that matter, absolute and resolved.

    root: the project
    home: cru's home
    user_home: the user's home
    readable: folders outside the project that may be read freely
    guarded: files that are protected although their names do not tell
    folders: further folders that count as part of the project
    secrets: what lets its reader log in elsewhere and does not lie where it usually does
    copy: the git worktree that `root` is in, if it is a copy of the project; what guards one guards the other
    copy_of: the repository's working tree that `copy` was made from, and that the project is in
    """

    root: str
    home: str
    user_home: str
    readable: tuple[str, ...] = ()
    guarded: frozenset[str] = frozenset()
    folders: tuple[str, ...] = ()
    copy: str = ""
    copy_of: str = ""
    secrets: tuple[str, ...] = ()

    @property
    def roots(self) -> tuple[str, ...]:
        return (self.root, *self.folders)

    def narrowed(self, readable: tuple[str, ...], root: str, inner: str, project: str) -> PathRoots:
        """Those of a sub-agent, that may read more. `root`: of its copy of `project`, if it has one, at the place `inner` of a worktree, as
        `project` is in its repository ("": all of it)."""
        below = f"/{inner}" if inner else ""
        own = replace(self, readable=(*self.readable, *readable))
        return (
            replace(own, root=root, copy=root.removesuffix(below), copy_of=project.removesuffix(below)) if root else own
        )

    def in_project(self, path: str) -> str:
        """The file that this one is a copy of; itself if it is none."""
        return self.copy_of + path[len(self.copy) :] if self.copy and is_inside(path, self.copy) else path


def resolve(path: str | os.PathLike[str]) -> str:
    return os.path.realpath(path).replace(os.sep, "/")


def named_secrets(env: Mapping[str, str], root: str, user_home: str) -> tuple[str, ...]:
    """Places of secrets that variables name, resolved. One in the project is the project's, and one that holds the project or the home
    names too much."""
    named = [
        os.path.join(place, name)
        for variable, names in SECRET_VARIABLES.items()
        for place in (env.get(variable) or "").split(os.pathsep if variable == "KUBECONFIG" else "\0")
        if place.startswith("/")
        for name in names
    ]
    named += [
        os.path.join(env[variable], name.removeprefix(folder))
        for variable, folder in _MOVED_FOLDERS.items()
        if env.get(variable, "").startswith("/")
        for name in SECRET_AT_HOME
        if name.startswith(folder)
    ]
    places = dict.fromkeys(resolve(place) for place in named)
    is_broad = [place for place in places if is_inside(root, place) or is_inside(user_home, place)]
    return tuple(place for place in places if place not in is_broad and not is_inside(place, root))


def locate(places: PathRoots, access: Literal["read", "write"], text: str) -> ResolvedPath:
    """Find a path as tools do: relative to the root, `~` is the user's home. Raises ValueError for what can be no path."""
    if text == "~" or text.startswith("~/"):
        joined = places.user_home + text[1:]
    elif text.startswith("~"):
        joined = os.path.expanduser(text)
    else:
        joined = text
    # The dots stay in what is resolved: `link/..` is the parent of the link's target.
    joined = os.path.join(places.root, joined)
    return ResolvedPath(access, text, os.path.normpath(joined).replace(os.sep, "/"), resolve(joined))


def is_outside(path: ResolvedPath, places: PathRoots) -> bool:
    """Whether it leads out of the project; freely readable folders count as inside for reading."""
    if any(is_inside(path.real, root) for root in places.roots):
        return False
    return path.access == "write" or not any(is_inside(path.real, folder) for folder in places.readable)


def is_protected(path: ResolvedPath, places: PathRoots) -> bool:
    """Whether writing here may change what cru, git or a shell does; or reading here give away keys or other conversations."""
    if path.access == "read":
        if any(is_inside(path.real, folder) for folder in places.readable):
            return False
        return any(_is_secret(spelling, places) for spelling in {path.real, path.lexical})
    return any(_is_protected_spelling(spelling, places) for spelling in {path.real, path.lexical})


def contains_secrets(folder: str, places: PathRoots) -> bool:
    """Whether a place that is protected from reading lies below this folder."""
    if is_inside(places.user_home, folder) or is_inside(places.home, folder):
        return True
    if is_inside(folder, places.user_home):
        own = folder[len(places.user_home.rstrip("/")) + 1 :].casefold() + "/"
        return any(name.startswith(own) for name in SECRET_AT_HOME) or _has_inside(folder, places.secrets)
    return _has_inside(folder, (*SECRET_PLACES, *places.secrets))


def _has_inside(folder: str, places: Iterable[str]) -> bool:
    return any(is_inside(place, folder) for place in places)


def _is_secret(path: str, places: PathRoots) -> bool:
    if is_inside(path, places.home) or _is_at_home(path, places, SECRET_AT_HOME):
        return True
    return any(is_inside(path, place) for place in (*SECRET_PLACES, *places.secrets))


def _is_protected_spelling(path: str, places: PathRoots) -> bool:
    return _is_secret(path, places) or _is_decisive_spelling(path, places)


def is_decisive(path: ResolvedPath, places: PathRoots) -> bool:
    """Whether what stands here decides what cru, git, a shell or another agent does; files that are only secret do not."""
    return any(_is_decisive_spelling(spelling, places) for spelling in {path.real, path.lexical})


def _is_decisive_spelling(path: str, places: PathRoots) -> bool:
    if not places.guarded.isdisjoint((path, places.in_project(path))) or is_inside(path, places.home):
        return True
    for root in (*places.roots, places.copy, places.copy_of) if places.copy else places.roots:
        if is_inside(path, root) and not PROTECTED_NAMES.isdisjoint(path[len(root) :].casefold().split("/")):
            return True
    from cru.core.guard.places.home_links import is_led_to  # only a write needs it

    return _is_at_home(path, places, PROTECTED_AT_HOME) or is_led_to(
        path, places.user_home, places.roots, PROTECTED_AT_HOME
    )


def _is_at_home(path: str, places: PathRoots, listed: tuple[str, ...]) -> bool:
    if not is_inside(path, places.user_home):
        return False
    own = path[len(places.user_home.rstrip("/")) + 1 :].casefold()
    return any(own == name.rstrip("/") or (name.endswith("/") and own.startswith(name)) for name in listed)
