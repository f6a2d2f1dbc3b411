"""A home is hidden but for what commands need: the table of what they read, and of what nobody but the user should."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.escapes import SECRET
from tests.core.guard.sandbox.playing import run
from tests.kit.sandbox import needs_sandbox

from cru.core.guard.rules.paths import PathRoots
from cru.core.guard.sandbox import SandboxSettings
from cru.core.guard.sandbox.own_places import problems

HIDDEN = (
    ".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history",
    ".lesshst", ".viminfo", ".local/share/fish/fish_history", ".local/share/nvim/shada/main.shada", ".local/share/atuin/history.db",
    ".config/containers/auth.json", ".local/share/containers/storage/x", ".config/uv/credentials.toml",
    ".local/share/uv/credentials/credentials.toml", ".config/pypoetry/auth.toml", ".config/pip/pip.conf", ".pip/pip.conf", ".condarc",
    ".gradle/gradle.properties", ".gradle/init.gradle", ".m2/settings.xml", ".m2/settings-security.xml", ".ivy2/.credentials",
    ".sbt/.credentials", ".nuget/NuGet/NuGet.Config", ".pub-cache/credentials.json", ".bundle/config", ".gem/credentials",
    ".hex/hex.config",
    ".cargo/credentials.toml", ".config/sops/age/keys.txt", ".age/key.txt", ".config/age/keys.txt", ".config/BraveSoftware/x",
    ".config/microsoft-edge/x", ".config/vivaldi/x", ".config/opera/x", ".mozilla/firefox/x", ".thunderbird/x", ".cache/mozilla/x",
    ".cache/google-chrome/x", ".config/Code/User/globalStorage/state.vscdb", ".vscode-server/data/x", ".config/JetBrains/x",
    ".emacs.d/auto-save-list/x", ".authinfo", ".config/Slack/x", ".config/discord/x", ".local/share/TelegramDesktop/x",
    ".config/hcloud/cli.toml", ".config/doctl/config.yaml", ".config/netlify/config.json", ".config/vercel/auth.json", ".vercel/auth.json",
    ".config/wrangler/x", ".wrangler/config/default.toml", ".config/heroku/x", ".config/stripe/config.toml", ".config/configstore/x.json",
    ".terraform.d/x", ".pulumi/credentials.json", ".databrickscfg", ".snowflake/config.toml", ".config/snowflake/x", ".dbt/profiles.yml",
    ".jupyter/x.json", ".ipython/profile_default/history.sqlite", ".local/share/jupyter/x", ".config/gspread/x", ".rhosts",
    ".smbcredentials",
    ".cups/client.conf", ".pki/nssdb/key4.db", ".bitcoin/wallet.dat", ".ethereum/keystore/x", ".config/solana/id.json",
    ".purple/accounts.xml",
    ".weechat/sec.conf", ".irssi/config", ".mutt/muttrc", ".msmtprc", ".offlineimaprc", ".fetchmailrc", ".getmail/x", ".davfs2/secrets",
    ".config/obs-studio/x", ".profile", ".bashrc", ".zshrc", ".config/fish/config.fish", ".aws/credentials", ".ssh/id_ed25519",
    ".cache/JetBrains/x", ".cache/aerc/x", ".cache/bash/x", ".cache/claude-cli-nodejs/x", ".cache/cliphist/x",
    ".cache/clipboard-indicator@tudmotu.com/x", ".cache/clipman.json", ".cache/copyq/x", ".cache/epiphany/x", ".cache/falkon/x",
    ".cache/floorp/x", ".cache/git/x", ".cache/greenclip.history", ".cache/keepassxc/x", ".cache/librewolf/x", ".cache/mu/x",
    ".cache/mutt/x", ".cache/neomutt/x", ".cache/nvim/x", ".cache/qutebrowser/x", ".cache/rbw/x", ".cache/vim/x", ".cache/waterfox/x",
    ".cache/zen/x", ".cache/zsh/x", ".config/mise/age.txt", ".dotnet/corefx/x", ".rye/credentials", ".sbt/0.13/credentials.sbt",
    ".sbt/1.0/credentials.sbt", ".sbt/gpg/x",
    ".gradle/daemon/8.14/registry.bin", ".m2/mvnd/registry/1.0/registry.bin", ".sbt/1.0/server/0a/sock",
    ".cache/bazel/_bazel_me/0a/server/request_cookie",
    ".netrc", ".npmrc", ".git-credentials", ".config/git/credentials", "Documents/taxes.txt", "src/other/.env", "notes.txt",
)  # fmt: skip
SHOWN = (
    ".gitconfig", ".config/git/config", ".config/git/ignore", ".gitignore_global", "templates/commit", "hooks/pre-commit", "more.gitconfig",
    ".nvm/nvm.sh", ".volta/bin/node", ".npm/_cacache/x", ".pyenv/versions/x", ".local/lib/python3.11/site-packages/x.py", ".local/bin/tool",
    ".local/share/uv/python/x", ".local/share/pipx/venvs/x", ".cache/pip/x", ".cache/uv/x", ".cache/go-build/x", ".cargo/registry/x",
    ".cargo/config.toml", ".rustup/toolchains/x", "go/pkg/mod/x", "go/bin/tool", ".config/go/env", ".m2/repository/x", ".gradle/caches/x",
    ".sdkman/candidates/x", ".asdf/shims/x", ".tool-versions", ".rbenv/shims/x", "miniconda3/bin/python", ".deno/bin/deno", ".bun/bin/bun",
    ".local/share/mise/installs/x", "bin/own", "src/library/x",
)  # fmt: skip
"""What everyday commands read, what the user's settings of git and the PATH name, and `readable`."""
GIT = """[core]
\thooksPath = ~/hooks
[commit]
\ttemplate = ~/templates/commit
[include]
\tpath = more.gitconfig
[credential]
\thelper = store --file ~/notes.txt
"""


def furnish(around: Surroundings) -> Path:
    home = around.here.path
    for name, text in (*((name, SECRET) for name in HIDDEN), *((name, "shown") for name in SHOWN)):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (home / ".gitconfig").write_text(GIT)
    around.here.env["PATH"] = f"{home}/bin:{around.here.env['PATH']}"
    return home


@needs_sandbox
def test_commands_read_of_a_home_what_they_need_and_nothing_else(
    surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = furnish(surroundings)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/bin:{os.environ['PATH']}")
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    settings = SandboxSettings(readable=["~/src/library", "~/.m2/settings.xml"])
    hidden = [name for name in HIDDEN if name != ".m2/settings.xml"]
    [(seen, _), (kept, _), (found, _), (opened, _)] = run(
        surroundings,
        [
            "; ".join(f"test -s ~/{name} && echo {name}" for name in hidden),
            "; ".join(f"test -s ~/{name} || echo {name}" for name in SHOWN),
            f"grep -rl {SECRET} ~ 2>/dev/null",
            "cat ~/.m2/settings.xml",
        ],
        settings=settings,
    )
    assert seen.split()[1:] == [] and kept.split()[1:] == []
    assert found.split()[1:] == [f"{home}/.m2/settings.xml"] and SECRET in opened


@needs_sandbox
def test_what_is_shown_cannot_be_changed_and_the_home_takes_nothing(surroundings: Surroundings) -> None:
    home = furnish(surroundings)
    run(
        surroundings,
        [
            "echo x > ~/.gitconfig; echo x > ~/new; mkdir ~/.config/new; echo x >> ~/.nvm/nvm.sh; echo x > ~/.cargo/config.toml"
        ],
    )
    assert (home / ".gitconfig").read_text() == GIT and (home / ".nvm" / "nvm.sh").read_text() == "shown"
    assert not (home / "new").exists() and not (home / ".config" / "new").exists()
    assert (home / ".cargo" / "config.toml").read_text() == "shown", "a layer of the session has it"


@needs_sandbox
def test_a_build_keeps_a_list_of_its_own_daemons(surroundings: Surroundings) -> None:
    """It sees none that runs outside, where a layer can be written."""
    home = furnish(surroundings)
    folders = ("~/.gradle/daemon", "~/.m2/mvnd", "~/.sbt/1.0/server", "~/.cache/bazel/_bazel_me/0a/server")
    [(made, _), (listed, _)] = run(
        surroundings, ["; ".join(f"echo x > {folder}/made-inside" for folder in folders), f"ls {' '.join(folders)}"]
    )
    assert "Read-only" not in made, made
    assert listed.split().count("made-inside") == len(folders) and SECRET not in listed and "registry" not in listed
    assert not list(home.rglob("made-inside"))


@needs_sandbox
def test_a_project_in_the_home_is_all_there_and_a_home_that_is_the_project_too(surroundings: Surroundings) -> None:
    home = furnish(surroundings)
    surroundings.here.project = home / "src" / "mine"
    surroundings.here.project.mkdir(parents=True)
    (surroundings.here.project / "file").write_text("mine")
    [(inside, _)] = run(surroundings, ["cat file; echo x > new; ls ../other"])
    assert "mine" in inside and "No such file" in inside and (surroundings.here.project / "new").exists()
    surroundings.here.project = home
    [(whole, _)] = run(surroundings, ["cat notes.txt; cat .ssh/id_ed25519"])
    assert whole.count(SECRET) == 1


READABLE = {
    "~/src/library": "",
    "~/.ssh": "stays hidden",
    "~/.aws/credentials": "stays hidden",
    "~": "cannot be shown as a whole",
    "/": "cannot be shown as a whole",
    "~/nowhere": "is not there",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", READABLE)
def test_readable_shows_nothing_that_is_always_hidden(surroundings: Surroundings, text: str) -> None:
    home = furnish(surroundings)
    places = PathRoots(str(surroundings.here.project), str(surroundings.here.cru), str(home))
    found = list(problems(SandboxSettings(readable=[text]), places))
    assert [READABLE[text] in problem for problem in found] == ([True] if READABLE[text] else [])
