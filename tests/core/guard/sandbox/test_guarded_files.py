"""Files that something runs or obeys later: no confined command changes or makes one, wherever it was told of."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.playing import run
from tests.kit import Call, Reply, cru, server
from tests.kit.sandbox import needs_sandbox

from cru.core.guard.places.home_links import home_links
from cru.core.guard.rules.later_runs import ASKED
from cru.core.guard.rules.paths import PROTECTED_AT_HOME, PROTECTED_NAMES
from cru.core.guard.sandbox.profile import AGENTS, EDITORS, GUARDS, GUIDES, SHELLS

FOLDERS = (
    ".agents", ".amazonq", ".augment", ".config/mise", ".continue", ".cursor", ".devcontainer", ".factory", ".fleet", ".githooks",
    ".github/agents", ".github/hooks", ".idea", ".junie", ".kilocode", ".kiro", ".mise", ".opencode", ".openhands", ".pi", ".qwen", ".roo",
    ".vscode", ".windsurf", ".zed",
)  # fmt: skip
CREATED = [f"{name}/file" if name in FOLDERS else name for name in (*GUARDS, *GUIDES) if name not in PROTECTED_NAMES]


@needs_sandbox
def test_no_command_makes_such_a_file(surroundings: Surroundings) -> None:
    project = surroundings.here.project
    [(output, moved)] = run(
        surroundings, [" && ".join(f'mkdir -p "$(dirname {name})" && echo x > {name}' for name in CREATED)]
    )
    assert output == "0 ", output
    assert [name for name in CREATED if (project / name).exists()] == []
    assert len(moved) == len(CREATED)


@needs_sandbox
def test_no_command_changes_such_a_file(surroundings: Surroundings) -> None:
    project = surroundings.here.project
    for name in CREATED:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("old")
    commands = [f"echo x > {name}; rm -f {name}; mv {name} moved; echo x > {name}" for name in CREATED]
    commands += [
        f"mv {Path(name).parts[0]} moved && mkdir -p {Path(name).parent} && echo x > {name}" for name in CREATED
    ]
    results = run(surroundings, ["; ".join(commands)])
    assert [name for name in CREATED if not (project / name).exists() or (project / name).read_text() != "old"] == [], (
        results
    )


def test_settings_of_further_agents_and_of_mise_are_among_them() -> None:
    run_later = {
        ".kiro",
        ".qwen",
        ".pi",
        ".github/hooks",
        "opencode.jsonc",
        ".aider.conf.yml",
        ".continuerc.json",
        "mise.local.toml",
    }
    assert run_later - {*GUARDS} == set()


def test_what_a_tool_asks_about_is_what_a_command_cannot_change() -> None:
    """But what belongs to everyday work of package managers, git and build services."""
    guarded = {name.casefold() for name in (*SHELLS, *EDITORS, *AGENTS, *GUIDES)}
    assert sorted(guarded - ASKED.keys()) == []
    left = {name for name in ASKED if name not in {guard.casefold().split("/")[0] for guard in GUARDS} | guarded}
    assert sorted(left) == [
        ".buildkite", ".cargo", ".circleci", ".drone.yml", ".forgejo/workflows", ".gitattributes", ".gitea/workflows", ".github/actions",
        ".github/workflows", ".gitlab-ci.yml", ".gitmodules", ".lefthook.yml", ".npmrc", ".pnpmfile.cjs", ".pre-commit-config.yaml",
        ".travis.yml", ".woodpecker.yml", ".yarnrc", ".yarnrc.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile",
        "lefthook.yaml", "lefthook.yml", "pip.conf",
    ]  # fmt: skip


@needs_sandbox
def test_git_may_change_a_tracked_text_that_agents_obey_and_the_person_is_told(surroundings: Surroundings) -> None:
    """Were it read-only, `git switch` would leave the old text, and the next commit would put it on the other branch."""
    project = surroundings.here.project
    steps = "git config user.name a && git config user.email a@b && echo 1 > f && git add f && git commit -qm 1 && git checkout -q -b other"
    steps += " && echo 1 > AGENTS.md && git add AGENTS.md && git commit -qm 2 && git checkout -q -b third && echo 2 > AGENTS.md"
    subprocess.run(["sh", "-ec", f"{steps} && git commit -qam 3 && git checkout -q -"], cwd=project, check=True)
    warnings: list[str] = []
    commands = [
        "git switch -q third",
        "git switch -q other~1 --detach",
        "git switch -q other && echo more >> f",
        "echo x > CLAUDE.md; echo ok",
    ]
    results = run(
        surroundings, [f"{command} && git status --short -- '*.md' f" for command in commands], warnings.append
    )
    assert [output for output, _ in results] == ["0 ", "0 ", "0  M f\n", "0 ok\n M f\n?? CLAUDE.md\n"]
    told = [text for text in warnings if "what agents obey" in text]
    assert len(told) == 2 and all(f"{project}/AGENTS.md" in text for text in told)
    assert results[-1][1] == [f"{project}/CLAUDE.md.from-sandbox"] and (project / "AGENTS.md").read_text() == "1\n"


LINKS = {
    ".bashrc": "bashrc",
    ".gitconfig": "git/config",
    ".vimrc": "vim/rc",
    ".tmux.conf": "tmux",
    ".config/systemd": "systemd",
    ".config/fish/conf.d/a.fish": "fish/a.fish",
    ".config/nvim": "nvim",
    ".config/i3/config": "i3",
}
"""Links in a home, and what of a project of dotfiles they lead to."""


def link_home(around: Surroundings) -> None:
    home, project = around.here.path, around.here.project
    for link, target in LINKS.items():
        (project / target).parent.mkdir(exist_ok=True)
        if target in ("systemd", "nvim"):
            (project / target).mkdir()
            (project / target / "file").write_text("old")
        else:
            (project / target).write_text("old")
        (home / link).parent.mkdir(parents=True, exist_ok=True)
        (home / link).symlink_to(project / target)
    (home / ".all").symlink_to(project)
    (home / "work").symlink_to(project / "free")
    (project / "free").mkdir()


def test_links_of_the_home_into_a_project_are_known(surroundings: Surroundings) -> None:
    link_home(surroundings)
    project = str(surroundings.here.project)
    found = home_links(str(surroundings.here.path), (project,), PROTECTED_AT_HOME)
    assert sorted(found) == sorted(f"{project}/{target}" for target in LINKS.values())
    assert home_links(str(surroundings.here.path), ("/usr",), PROTECTED_AT_HOME) == ()


@needs_sandbox
def test_no_command_changes_what_the_home_leads_to(surroundings: Surroundings) -> None:
    link_home(surroundings)
    project = surroundings.here.project
    files = [f"{target}/file" if (project / target).is_dir() else target for target in LINKS.values()]
    commands = [f"echo x > {name}; rm -rf {name}; mv {name} moved; echo x > {name}" for name in files]
    commands += [
        "rm -rf fish systemd nvim; mkdir -p nvim; echo x > nvim/file; echo x > systemd/new.service",
        "echo x > free/file",
    ]
    run(surroundings, ["; ".join(commands)])
    assert [name for name in files if (project / name).read_text() != "old"] == []
    assert not (project / "systemd" / "new.service").exists() and (project / "free" / "file").exists()


@pytest.mark.parametrize("name", ["bashrc", "systemd/new.service", "nvim/file"])
def test_a_tool_asks_before_it_writes_what_the_home_leads_to(surroundings: Surroundings, name: str) -> None:
    here = surroundings.here
    link_home(surroundings)
    calls = [Call("write", {"file_path": path, "content": "x"}) for path in (name, "free/file")]
    with server([Reply(calls=calls), Reply("done")]) as model:
        here.configure(url=model.url)
        done = cru("--mode", "auto", "-C", "c", "go", home=here)
    assert done.code == 0, done.err
    refused, written = (str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result")
    assert "nobody can be asked" in refused and (here.project / "free" / "file").read_text() == "x", written


@needs_sandbox
def test_links_on_the_way_from_the_home_stay_what_they_are(surroundings: Surroundings) -> None:
    project, home = surroundings.here.project, surroundings.here.path
    (project / "v1").mkdir()
    (project / "v1" / "bashrc").write_text("old")
    (project / "current").symlink_to("v1")
    (home / ".bashrc").symlink_to(project / "current" / "bashrc")
    (project / "rc").write_text("old")
    (project / "hop").symlink_to("rc")
    (home / "dots").symlink_to(project)
    (home / ".zshrc").symlink_to("dots/hop")
    [(output, _)] = run(
        surroundings, ["rm current hop; mkdir current; echo x > current/bashrc; echo x > hop; echo x > v1/new"]
    )
    assert output == "0 " and (project / "v1" / "new").exists()
    assert (home / ".bashrc").read_text() == (home / ".zshrc").read_text() == "old"


GUARD_LINKS = {
    ".git/hooks": "tools/hooks/file",
    ".git/config": "tools/config",
    ".claude": "parts/claude/settings.json",
    ".envrc": "env/development",
    ".vscode": "conf/vscode/tasks.json",
    ".github": "conf/github/instructions/file",
}
"""Guards, or folders around them, that are links, and a file that they lead to."""


@needs_sandbox
@pytest.mark.parametrize("guard", GUARD_LINKS)
def test_no_command_changes_what_a_guard_that_is_a_link_leads_to(surroundings: Surroundings, guard: str) -> None:
    project, name = surroundings.here.project, GUARD_LINKS[guard]
    file = project / name
    file.parent.mkdir(parents=True)
    file.write_text("# old\n")
    subprocess.run(["rm", "-rf", project / guard], check=True)
    (project / guard).symlink_to(
        project / name if guard in (".envrc", ".git/config") else project / "/".join(Path(name).parts[:2])
    )
    top = Path(name).parts[0]
    run(
        surroundings, [f"echo x > {name}; rm -rf {name}; mv {top} moved; mkdir -p {Path(name).parent}; echo x > {name}"]
    )
    assert file.read_text() == "# old\n"
    command = f"rm {guard}; mkdir -p {guard}/instructions; echo x > {guard}/instructions/file"
    run(surroundings, [command])
    assert (project / guard).is_symlink() and file.read_text() == "# old\n"


@needs_sandbox
def test_a_link_to_the_whole_project_or_to_a_text_of_a_branch_leaves_that_writable(surroundings: Surroundings) -> None:
    project = surroundings.here.project
    (project / "AGENTS.md").write_text("old")
    subprocess.run(["git", "add", "AGENTS.md"], cwd=project, check=True)
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    (project / ".agents").symlink_to(".")
    (project / ".vscode").symlink_to(".vscode")
    run(surroundings, ["echo x > file; echo x > AGENTS.md"])
    assert (project / "file").exists() and (project / "AGENTS.md").read_text() == "x\n"


SETTINGS = {
    "hooks of every repository": "[core]\n\thooksPath = tools/hooks\n",
    "a filter": '[filter "a"]\n\tclean = tools/hooks/pre-commit\n',
    "an alias that runs a program": "[alias]\n\ta = !tools/hooks/pre-commit\n",
    "more settings": "[include]\n\tpath = {project}/tools/hooks\n",
}


@needs_sandbox
@pytest.mark.parametrize("case", SETTINGS)
def test_what_the_users_own_settings_of_git_name_is_guarded(
    surroundings: Surroundings, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = surroundings.here
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(here.path))
    hook = here.project / "tools" / "hooks" / "pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_text("old")
    (here.path / ".gitconfig").write_text(SETTINGS[case].format(project=here.project))
    run(surroundings, [f"echo x > {hook}; mv tools moved; mkdir -p tools/hooks; echo x > {hook}"])
    assert hook.read_text() == "old"


def test_an_alias_of_git_names_no_file(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    """`status` in `st = status` is a word of git, whatever file has this name."""
    from cru.core.guard.places.git_runs import named_places

    monkeypatch.setenv("HOME", str(surroundings.here.path))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    project = surroundings.here.project
    (project / "status").write_text("x")
    subprocess.run(["git", "-C", project, "config", "alias.st", "status"], check=True)
    assert named_places(str(project)) == ()
    subprocess.run(["git", "-C", project, "config", "alias.st", "!./status"], check=True)
    assert named_places(str(project)) == (str(project / "status"),)
