"""A deny or ask rule looks for its command behind every program that may run its operands; an allow rule does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.guard.rules.test_commands import bash, gate

from cru.core.guard.rules.command_matching import SearchedCommand
from cru.core.guard.shell.inner_commands import find_inner_commands
from cru.core.guard.shell.programs import INTERPRETERS, SHELLS, WRAPPERS

PREFIXES = """
./wrap.sh | ../bin/wrap | wrap | wrap -x | wrap -x y | wrap --name=z | wrap -- | wrap -n 5 -- | wrap one two | wrap /usr/bin/env
uv run | uv run --with x | uv run -- | uv tool run | uvx | npx | npx -- | npm exec | npm exec -- | npm x -- | pnpm exec | pnpm dlx
pnpm run x -- | yarn run x | npm run x -- | yarn dlx | yarn exec | bundle exec | poetry run | pipx run | hatch run | pdm run | pixi run
rye run | pipenv run | conda run -n base | mise exec -- | mise x -- | direnv exec . | nix develop -c | nix-shell --run | devbox run
docker exec c | docker exec -it c | docker run --rm -it img | docker run img | docker container exec c | docker compose exec web
docker compose run --rm web | podman exec c | podman run img | docker-compose run web | kubectl exec pod -- | kubectl -n x exec pod --
kubectl run x --image=y --command -- | nerdctl run img | toolbox run | distrobox enter box -- | vagrant ssh -c | heroku run
gh codespace ssh -- | gcloud compute ssh host --command | cargo run -- | cargo watch -s | go run ./cmd | go run x.go
sudo | sudo -u x | doas | su -c | su user -c | env | env A=1 | env -i | nice | nice -n 5 | nohup | timeout 5 | timeout -k 1 5 | time
watch | watch -n 1 | xargs | xargs -n1 | xargs -I X | parallel | parallel -j2 | stdbuf -oL | setsid | flock lock | chroot dir
strace | strace -f | ssh host | ssh -p 1 host | script -c | script -qc | tmux new -d | tmux new-session -d -s x | screen -dm
find . -exec | find . -name x -exec | fd -x | sh -c | bash -lc | zsh -c | ssh-agent | dotenv | dotenv -- | foreman run
caffeinate | caffeinate -i | hyperfine | entr | ionice -c3 | unbuffer | systemd-run | op run -- | aws-vault exec x -- | chezmoi execute
concurrently | nodemon --exec | watchexec | watchexec -- | reflex -- | just run | task run | lerna exec -- | nx run x | turbo run x --
""".replace("\n", "|").split("|")  # fmt: skip
RUNNING = [prefix.strip() for prefix in PREFIXES if prefix.strip()]
FORMS = ("git add -A", "'git add -A'", '"git add -A ."', "/usr/bin/git add -A", "git -C sub add -A", "sudo git add -A")
HIT = [
    ("git add -A*", "./wrap.sh --cmd='git add -A'"), ("git add -A*", "./wrap.sh CMD='git add -A'"),
    ("git add -A*", "wrap 'cd x; git add -A'"), ("git add -A*", "wrap 'cd x && git add -A'"), ("git add -A*", "wrap 'cd x;git add -A'"),
    ("git add -A*", "wrap 'true|git add -A'"), ("git add -A*", "wrap \"sh -c 'git add -A'\""),
    ("git add -A*", "wrap 'x $(git add -A)'"), ("git add -A*", "wrap '(git add -A)'"),
    ("git add -A*", "ls && ./wrap.sh git add -A && ls"), ("git add -A*", "ls | wrap git add -A"),
    ("git add -A*", "uv run ./x.sh git add -A"), ("git add -A*", "uv run docker exec c git add -A"),
    ("git add *", "wrap 'uv run git add .'"), ("rm *", "wrap rm"), ("rm *", "wrap /bin/rm x"), ("rm *", "wrap -- rm x"),
    ("rm *", "uv run --with grep rm x"), ("pip install *", "wrap pip3.11 install x"), ("sudo rm *", "wrap sudo rm x"),
    ("pip install *", "uv run pip install x"), ("git push *", "make -C x && foo git push"), ("git push *", "git lfs2 git push"),
    ("git push *", "git submodule foreach git push"), ("git push *", "git bisect run git push"),
    ("git push *", "git rebase --exec 'git push' x"), ("rm *", "sed '1e rm v' x"),
    ("rm *", "tar cf x --checkpoint=1 --checkpoint-action=exec='rm v' y"), ("rm *", "rg --pre 'rm x' y"),
    ("rm *", "awk 'BEGIN { system(\"rm x\") }'"), ("rm *", "sort --compress-program='rm x' y"), ("rm *", "make SHELL='rm x'"),
]  # fmt: skip
NAMED = [
    "x=git; $x push y", "X=/usr/bin/git; ${X} push y", "export X=git; $X push", 'X="git" && "$X" push y', "x=git; y=ls; $y; $x push z",
    "x=ls; $x; x=git; $x push y", "x=pu; git ${x}sh", "for c in add push; do git $c x; done", "bash -c 'x=git; $x push y'",
    "alias g=git; g push x", "alias g='git -P'\ng push x", "$(which git) push x", "`which git` push x", '"$(command -v git)" push x',
    "$(type -P git) push x", "$(echo git) push x", "git $(echo push) x",
]  # fmt: skip
"""Commands whose name is given in the same line."""
WRAPPED = [
    "sudo git submodule foreach rm x", "timeout 5 git bisect run rm x", "sudo find . -exec rm {} +", "echo '-exec rm {} +' | xargs find .",
    "echo 'rm x' | xargs docker run img", "printf '\\x72m x' | xargs docker run img", "xargs docker run img rm", "sudo -u git rm x",
    "xargs -I git rm x", "xargs -n 1 -P 4 rm", "timeout 5 ssh h rm x", "sudo env X=1 rm x", "sudo sed '1e rm x' y",
    "sudo tar --to-command='rm x' -xf y", "sudo git -c alias.x='!rm y' x", "time rm x", "time -p rm x", "! sudo rm x",
    "if sudo rm x; then y; fi", "command -v ls; rm x", "command -p rm x", "sudo docker exec c rm x", "sudo kubectl exec p -- rm x",
    "brew bundle exec rm x", "gem exec rm x", "cmake -E rm x", "cmake -E env rm x", "flatpak run org.x rm x", "docker create img rm x",
    "docker service create x rm x", "podman unshare rm x", "npm explore x -- rm x", "yarn workspace x exec rm x",
]  # fmt: skip
"""Commands behind programs that say for certain what they run, or nearly."""
NOT_RUN = [
    "sudo docker rm x", "sudo git rm x && sudo docker rmi y", "timeout 60 docker rm x", "nice docker rm x", "time docker rm x",
    "! docker rm x",
    "if docker rm x; then echo y; fi", "if [ -f rm ]; then docker rm x; fi", "docker ps -q | xargs docker rm",
    "git ls-files | xargs -0 git rm",
    "docker ps -aq | xargs -r docker rm -f", "sudo apt-get install -y rm", "sudo brew install rm", "command -v rm", "command -V rm",
    "if command -v rm >/dev/null; then echo x; fi", "time grep rm x", "timeout 5 grep rm x", "sudo grep rm x", "xargs grep rm",
    "find . -type f | xargs grep -l rm", "brew install rm", "gem install rm", "flatpak install rm", "snap install rm", "cmake --build rm",
    "docker volume create rm", "kubectl create ns rm", "npm create rm", "x=git; $x status", "for f in a b; do cat $f; done",
]  # fmt: skip
"""Ordinary commands in which `rm` is no command."""
DATA = [
    "echo {}", "echo '{}'", "printf '%s\\n' '{}'", "grep -r '{}' .", "grep -rn -- '{}' docs", "rg '{}'", "rg -n '{}' docs", "ag '{}'",
    "git commit -m '{}'", "git commit -qm '{}'", "git commit --message='{}'", "git log --grep='{}'", "git log -S '{}'", "git log -- {}",
    "git grep '{}'", "git stash push -m '{}'", "git tag -a v1 -m '{}'", "git notes add -m '{}'", "git merge -m '{}' x", "git branch '{}'",
    "sed -i 's/x/{}/' f", "sed -n '/{}/p' f", "cat {}", "ls {}", "cp {} x", "mv {} x", "touch {}", "mkdir {}", "test -f {}",
    "[ '{}' = x ]",
    "which {}", "jq '{}' x", "cut -d ' ' {}", "head {}", "tail -f {}", "wc {}", "diff {} x", "find . -name '{}'", "kill {}", "sort {}",
    "tar -cf x.tar {}", "zip x.zip {}", "rsync -a {} x",  "wget {}", "basename {}",
    "gh pr create --title x --body '{}'", "gh issue comment 1 --body '{}'", "npm install {}", "npm uninstall {}", "pip install {}",
    "uv pip install {}", "uv add {}", "cargo add {}", "apt-get install {}", "brew install {}", "pytest -k '{}'", "uv run pytest -k '{}'",
    "uv run echo {}", "./wrap.sh echo {}", "poetry-core --x='see {}'", "./notify.sh 'please {}'", "docker build -t '{}' .",
    "docker ps {}",
    "kubectl get {}", "man {}", "type {}", "jj commit -m '{}'", "hg commit -m '{}'", "svn commit -m '{}'", "say '{}'", "npm rm {}",
    "git rm {}", "npm run rm", "npm run curl", "wrap 'do not {}'", "true {}", "false '{}'", "cd '{}'", "ruff check {}",
    "cmake --build {}",
]  # fmt: skip


def hits(rule: str, command: str) -> tuple[bool, bool]:
    denied = bash(gate(mode="trust", deny=(f"bash:{rule}",)), command).decision == "deny"
    return denied, bash(gate(mode="trust", ask=(f"bash:{rule}",)), command).decision == "ask"


@pytest.mark.parametrize("prefix", RUNNING)
def test_a_rule_finds_its_command_behind_a_program_that_may_run_it(prefix: str) -> None:
    missed = [form for form in FORMS if hits("git add -A*", f"{prefix} {form}") != (True, True)]
    assert missed == []


@pytest.mark.parametrize(("rule", "command"), HIT)
def test_a_rule_finds_its_command_in_an_operand(rule: str, command: str) -> None:
    assert hits(rule, command) == (True, True)


@pytest.mark.parametrize("command", NAMED)
def test_a_rule_finds_its_command_behind_a_name_that_the_line_gives(command: str) -> None:
    assert hits("git push *", command) == (True, True)
    assert hits("git pull *", command) == (False, False)


@pytest.mark.parametrize("command", WRAPPED)
def test_a_rule_finds_its_command_behind_a_wrapper(command: str) -> None:
    assert hits("rm *", command) == (True, True)


@pytest.mark.parametrize("command", NOT_RUN)
def test_a_wrapper_makes_no_command_of_other_words(command: str) -> None:
    assert hits("rm *", command) == (False, False)


@pytest.mark.parametrize("command", DATA)
def test_operands_that_are_data_are_no_commands(command: str) -> None:
    for rule, text in (("git add -A*", "git add -A"), ("rm *", "rm x"), ("curl *", "curl")):
        assert hits(rule, command.format(text)) == (False, False), text


@pytest.mark.parametrize("prefix", RUNNING)
def test_an_allow_rule_permits_nothing_behind_another_program(prefix: str) -> None:
    judge = gate(allow=("bash:git add *",))
    assert [form for form in FORMS if bash(judge, f"{prefix} {form}").decision == "allow"] == [
        form for form in FORMS[:1] if prefix in ALLOWED_AROUND
    ]


ALLOWED_AROUND = ("time", "env", "timeout 5", "timeout -k 1 5", "nice -n 5", "nice")
"""What may stand around an allowed command (docs/decisions/command-rules.md)."""


def test_what_runs_its_words_is_not_data() -> None:
    for name in (*WRAPPERS, *SHELLS, "python3.11", "npx", "make"):
        assert find_inner_commands((name, "a", "b")) == (1, 2), name
    assert {"python", "npx", "bunx"} <= INTERPRETERS


WORD = st.sampled_from(
    ["a", "-x", "--y=z", "--", "wrap", "uv", "run", "echo", "docker", "exec", "git", "X=1", "sudo", "-C"]
)


@given(st.lists(WORD, min_size=1, max_size=8).map(tuple))
def test_inner_commands_stand_behind_the_program_in_their_order(words: tuple[str, ...]) -> None:
    places = find_inner_commands(words)
    assert list(places) == sorted(set(places)) and all(0 < at < len(words) for at in places)


@given(st.lists(WORD, max_size=6))
def test_a_rule_finds_its_command_behind_an_unknown_program_and_any_words(words: list[str]) -> None:
    if {"echo", "git", "uv", "docker"} & set(words):  # programs that say what their words are
        return
    from cru.core.base.files.glob import parse_glob
    from cru.core.guard.shell.analysis import analyze

    assert SearchedCommand(analyze(" ".join(["wrap", *words, "rm", "x"]))).matches(parse_glob("rm *"))
