"""What commands see of the user's home, which is hidden otherwise: toolchains, caches of package managers, settings of git.

The table follows what programs document. What a place holds that lets its reader log in stays hidden in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from glob import escape, iglob

from cru.core.base.files import is_inside, login_home
from cru.core.guard.places.git_runs import user_places
from cru.core.guard.rules.paths import PathRoots

GIT = (
    ".config/git/attributes",
    ".config/git/config",
    ".config/git/ignore",
    ".gitattributes",
    ".gitconfig",
    ".gitignore",
    ".gitignore_global",
)
CACHES = (
    ".cache", ".bun/install/cache", ".conda/pkgs", ".gradle", ".ivy2", ".m2", ".npm", ".nuget/packages", ".pub-cache", ".yarn",
    "go/pkg", "Library/Caches",
)  # fmt: skip
TOOLCHAINS = (
    ".asdf", ".bun", ".cargo", ".deno", ".dotnet", ".elan", ".fnm", ".ghcup", ".goenv", ".guix-profile", ".jbang", ".jenv", ".julia",
    ".juliaup", ".kerl", ".konan", ".linuxbrew", ".local/bin", ".local/include", ".local/lib", ".local/lib64", ".local/libexec",
    ".local/pipx", ".local/share/coursier", ".local/share/fnm", ".local/share/gem", ".local/share/hatch", ".local/share/mise",
    ".local/share/pdm", ".local/share/pipx", ".local/share/pnpm", ".local/share/rtx", ".local/share/uv", ".local/share/virtualenv",
    ".local/share/virtualenvs", ".local/state/fnm_multishells", ".local/state/nix", ".luarocks", ".mix", ".moon", ".n", ".nix-profile",
    ".nodenv", ".npm-global", ".npm-packages", ".nvm", ".opam", ".phpbrew", ".pixi", ".plenv", ".poetry", ".proto", ".pyenv", ".rbenv",
    ".rustup", ".rvm", ".rye", ".sbt", ".sdkman", ".stack", ".swiftly", ".swiftpm", ".virtualenvs", ".volta", "Android/Sdk",
    "anaconda3", "flutter", "go/bin", "go/src", "mambaforge", "micromamba", "miniconda3", "miniforge3", "perl5", "sdk",
    "Library/Android/sdk", "Library/Developer", "Library/Python", "Library/pnpm",
)  # fmt: skip
SETTINGS = (
    ".config/go", ".config/mise", ".config/nextest.toml", ".config/rustfmt", ".config/uv/uv.toml", ".default-gems", ".default-npm-packages",
    ".editorconfig", ".gemrc", ".java-version", ".mavenrc", ".node-version", ".nvmrc", ".python-version", ".ruby-version", ".rustfmt.toml",
    ".tool-versions",
)  # fmt: skip
VISIBLE = (*GIT, *CACHES, *TOOLCHAINS, *SETTINGS)
"""Files and folders in a home that commands see."""
HIDDEN = (
    ".cache/BraveSoftware", ".cache/JetBrains", ".cache/aerc", ".cache/bash", ".cache/chromium", ".cache/claude-cli-nodejs",
    ".cache/clipboard-indicator@tudmotu.com", ".cache/cliphist", ".cache/clipman.json", ".cache/copyq", ".cache/epiphany",
    ".cache/evolution", ".cache/falkon", ".cache/floorp", ".cache/git", ".cache/gnome-software", ".cache/google-chrome",
    ".cache/greenclip.history", ".cache/keepassxc", ".cache/keyring", ".cache/librewolf", ".cache/microsoft-edge", ".cache/mozilla",
    ".cache/mu", ".cache/mutt", ".cache/neomutt", ".cache/nvim", ".cache/opera", ".cache/qutebrowser", ".cache/rbw", ".cache/rclone",
    ".cache/spotify", ".cache/thumbnails", ".cache/thunderbird", ".cache/tracker3", ".cache/vim", ".cache/vivaldi", ".cache/waterfox",
    ".cache/zen", ".cache/zsh", ".config/mise/age.txt", ".dotnet/corefx", ".gradle/gradle.properties", ".gradle/init.d",
    ".gradle/init.gradle", ".ivy2/.credentials", ".julia/logs/repl_history.jl", ".julia/servers", ".local/share/uv/credentials",
    ".m2/settings-security.xml", ".m2/settings.xml", ".npm/_logs", ".nuget/NuGet", ".pub-cache/credentials.json", ".rye/credentials",
    ".sbt/.credentials", ".sbt/0.13/credentials.sbt", ".sbt/1.0/credentials.sbt", ".sbt/gpg", ".stack/upload/credentials.json",
    ".swiftpm/configuration", "Library/Caches/Firefox", "Library/Caches/Google", "Library/Caches/com.apple.Safari",
)  # fmt: skip
"""What of that may hold keys, or shows what the user does elsewhere."""
DAEMONS = (".cache/bazel/*/*/server", ".gradle/daemon", ".m2/mvnd", ".sbt/*/server")
"""Patterns of folders with the addresses and tokens of build daemons, which run what they are asked to outside of the sandbox."""


def hidden_homes(places: PathRoots, roots: Sequence[str]) -> list[str]:
    """Return the user's home, and that which the system has for the user, but for one that is or lies in what commands may change."""
    homes = dict.fromkeys(map(os.path.realpath, (places.user_home, login_home())))
    return [
        home
        for home in homes
        if home != "/" and os.path.isdir(home) and not any(is_inside(home, root) for root in roots)
    ]


def visible_at_home(homes: Iterable[str], places: PathRoots) -> Iterator[str]:
    """Yield what commands see of these homes, as it is named there."""
    for home in homes:
        yield from (path for name in VISIBLE if os.path.exists(path := f"{home}/{name}"))
        if home == places.user_home:
            yield from (
                path for path in user_places() if is_inside(path, home) and path != home and os.path.exists(path)
            )


def hidden_at_home(homes: Iterable[str]) -> Iterator[str]:
    """Yield what stays hidden of what is visible."""
    for home in homes:
        yield from (f"{home}/{name}" for name in HIDDEN)
        yield from daemon_folders(home)


def daemon_folders(home: str) -> Iterator[str]:
    """Yield the folders of build daemons that exist."""
    for pattern in DAEMONS:
        top, _, rest = pattern.partition("/*/")
        if os.path.isdir(f"{home}/{top}"):
            yield from iglob(f"{escape(home)}/{pattern}") if rest else (f"{home}/{top}",)
