"""Rules that a person edits at a question: the prefix that is proposed, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.guard.rules.world import World

from cru.core.base.files.glob import escape
from cru.core.guard import BadRule
from cru.core.guard.rules.gate import PermissionReply, PermissionSubject

PROPOSED = [
    ("git log -3", "bash:git log *"), ("git status -s", "bash:git status *"), ("git diff --stat", "bash:git diff *"),
    ("git show HEAD", "bash:git show *"), ("git blame a.py", "bash:git blame *"), ("git grep -n x", "bash:git grep *"),
    ("git ls-files", "bash:git ls-files *"), ("git rev-parse HEAD", "bash:git rev-parse *"), ("git describe --tags", "bash:git describe *"),
    ("git shortlog -sn", "bash:git shortlog *"), ("docker ps -a", "bash:docker ps *"), ("docker logs web", "bash:docker logs *"),
    ("docker compose ps", "bash:docker compose ps *"), ("gh pr view 3", "bash:gh pr view *"), ("gh pr diff 3", "bash:gh pr diff *"),
    ("gh issue list", "bash:gh issue list *"), ("gh run view 1 --log", "bash:gh run view *"), ("kubectl logs x", "bash:kubectl logs *"),
    ("kubectl get pods -A", "bash:kubectl get pods *"), ("npm ls", "bash:npm ls *"), ("npm view x", "bash:npm view *"),
    ("pip show x", "bash:pip show *"), ("pip list", "bash:pip list *"), ("systemctl status x", "bash:systemctl status *"),
]  # fmt: skip
EXACT = [
    # hooks of the repository, or filters and drivers of its attributes, may run
    "git commit -m x", "git add .", "git add -A", "git checkout main", "git switch main", "git restore a.py", "git merge topic",
    "git rebase main", "git pull --rebase", "git push origin main", "git fetch origin", "git stash push", "git am x.patch",
    "git cherry-pick abc", "git revert abc", "git reset --hard", "git branch new", "git tag v1", "git worktree add ../x", "git clone x y",
    "git gc", "git submodule update", "git remote update", "git notes add -m x", "git bisect good", "git apply x.patch", "git rm x",
    "git mv a b", "git clean -n", "git config user.name", "git update-ref HEAD x", "git archive HEAD", "gh pr checkout 3",
    # code of the project or of a package
    "npm run build", "npm test", "npm install", "npm audit fix", "npm exec x", "pnpm list", "yarn list", "pip install x", "cargo test",
    "cargo metadata", "cargo tree", "go test ./...", "go list ./...", "go build ./...", "make", "make test", "pytest -q", "python x.py",
    "docker run x", "docker exec x ls", "docker build .", "docker compose up", "kubectl exec x ls", "mvn test", "gradle test", "uv run x",
    # what is in files, or secrets
    "cat a", "head a", "grep x a", "rg x", "sed -n 1p a", "awk 1 a", "diff a b", "less a", "kubectl get secrets", "kubectl get all",
    "kubectl config view", "gh api x", "gh auth status", "docker cp a b", "curl https://x", "docker inspect x", "git hash-object a",
    # changes
    "gh pr merge 3", "gh pr create --title x", "gh repo delete x", "kubectl apply -f x", "docker rm x", "systemctl stop x", "rm x",
    # what is no single plain command
    "sudo git log", "git push && make", "git log && git diff", "xargs git log", "env X=1 git log x", "sh -c 'git log x'", "git log | cat",
    "git -C x log", "find . -exec rm {} ;", "find . -name x", "git log --output=x", "git log --frobnicate", "git status --frobnicate",
    "npm ls --frobnicate",
]  # fmt: skip
PROPOSED += [(command, f"bash:{escape(command)}") for command in EXACT]


@pytest.mark.parametrize(("command", "rule"), PROPOSED)
def test_a_prefix_is_proposed_where_it_makes_sense(tmp_path: Path, command: str, rule: str) -> None:
    gate = World(tmp_path).gate()
    editing = gate.editing_for(f"bash:{command}", "bash", "shell", command)
    assert editing is not None and editing.proposal == rule
    assert editing.why_not(editing.proposal) == ""


@pytest.mark.parametrize("command", EXACT)
def test_an_answer_keeps_the_exact_command_where_more_could_run_hooks_or_read_files(
    tmp_path: Path, command: str
) -> None:
    assert World(tmp_path).gate().rule_for("bash", "shell", command) in ("", f"bash:{escape(command)}")


REFUSED = [
    ("bash", "git push x", "bash"), ("bash", "git push x", "bash:*"), ("bash", "git push x", "bash: *"), ("bash", "git push x", "*"),
    ("bash", "git push x", "bash:g*"), ("bash", "git push x", "bash:git push*"), ("bash", "git push x", "bash:git *"),
    ("bash", "git push x", "bash:* x"), ("bash", "git push x", "bash:git pull *"), ("bash", "git push x", "edit:git push *"),
    ("bash", "git push x", "bash:"), ("bash", "git push x", ""), ("bash", "python x.py", "bash:python *"),
    ("bash", "/usr/bin/python3.11 x.py", "bash:/usr/bin/python3.11 *"), ("bash", "sudo ls x", "bash:sudo *"),
    ("bash", "sudo ls x", "bash:sudo ls *"), ("bash", "env ls x", "bash:env *"), ("bash", "xargs rm", "bash:xargs *"),
    ("bash", "sh x", "bash:sh *"), ("bash", "find . -exec rm {} ;", "bash:find *"), ("bash", "node x.js", "bash:node *"),
    ("bash", "/usr/bin/touch x", "bash:/usr/bin/*"), ("bash", "./bin/x y", "bash:./bin/*"), ("bash", "./x y", "bash:./*"),
    ("bash", "npm exec x", "bash:npm exec *"), ("bash", "bundle exec x", "bash:bundle exec *"), ("bash", "julia x", "bash:julia *"),
    ("bash", "CI=1 npm test", "bash:CI=1 *"), ("bash", "CI=1 python x.py", "bash:CI=1 python *"), ("bash", "CI=1 sh x", "bash:CI=1 sh *"),
    ("bash", "git --no-pager log", "bash:git --no-pager *"), ("bash", "git --no-pager log", "bash:git -P *"),
    ("bash", "rm x || true", "bash:LC_ALL=C *"), ("bash", "nice python x.py", "bash:nice python *"),
    ("bash", "cargo run", "bash:cargo run *"), ("bash", "find . -exec rm {} ;", "bash:find . -exec *"),
    ("bash", "pip3 list", "bash:pip3 *"), ("bash", "cru x", "bash:cru *"), ("write", "src/a.py", "write:../**"),
    ("write", "src/a.py", "write:../*/src/a.py"), ("write", "src/a.py", "write:~/**"), ("write", "src/a.py", "write:/**/a.py"),
    ("write", "src/a.py", "write:~/p*/**"), ("write", "src/a.py", "write"),
    ("write", "src/a.py", "write:**"), ("write", "src/a.py", "write:docs/*"),
    ("fetch", "https://a.b/c", "fetch"), ("fetch", "https://a.b/c", "fetch:https://*"), ("fetch", "https://a.b/c", "fetch:https://*.b/*"),
]  # fmt: skip
KEPT = [
    ("bash", "./bin/x y", "bash:./bin/x *"), ("bash", "npm run build", "bash:npm run build *"), ("bash", "tar x", "bash:tar x"),
    ("write", "src/a.py", "write:s*/**"), ("write", "src/a.py", "write:~/project/src/*"), ("write", "src/a.py", "write:src/*.py"),
    ("bash", "git push x", "bash:git push *"), ("bash", "git push x", "bash:git push x"), ("bash", "ls a b", "bash:ls *"),
    ("bash", "python x.py", "bash:python x.py"), ("bash", "ls src", "shell:ls *"), ("write", "src/a.py", "write:src/**"),
    ("write", "src/a.py", "write:src/a.py"), ("fetch", "https://a.b/c", "fetch:https://a.b/*"),
]  # fmt: skip
KINDS = {"bash": "shell", "write": "write", "fetch": "fetch"}


@pytest.mark.parametrize(
    ("tool", "detail", "rule", "is_kept"), [*((*row, False) for row in REFUSED), *((*row, True) for row in KEPT)]
)
def test_an_edited_rule_covers_the_call_and_not_everything(
    tmp_path: Path, tool: str, detail: str, rule: str, is_kept: bool
) -> None:
    gate = World(tmp_path).gate()
    editing = gate.editing_for(f"{tool}:{detail}", tool, KINDS[tool], detail)
    assert editing is not None and (editing.why_not(rule) == "") is is_kept
    subject = PermissionSubject(tool, KINDS[tool], detail, rule=f"{tool}:{detail}", editing=editing)
    reply = PermissionReply("always", rule=rule or "bash:")
    if is_kept:
        gate.remember(subject, reply)
        assert gate.judge(tool, KINDS[tool], detail).decision == "allow"
    else:
        with pytest.raises(BadRule):
            gate.remember(subject, reply)
        assert gate.grants.rules() == ()


def test_a_rule_that_covers_nothing_that_others_leave_is_not_kept(tmp_path: Path) -> None:
    gate = World(tmp_path).gate(allow=("bash:ls *",))
    editing = gate.editing_for("bash:ls", "bash", "shell", "ls -l | head")
    assert editing is not None and editing.why_not("bash:head *") == "" and editing.why_not("bash:cat *")
    whole = gate.editing_for("bash:ls -l", "bash", "shell", "ls -l")
    assert whole is not None and whole.why_not("bash:unrelated *") and whole.why_not("bash:ls -l") == ""


EXAMPLES = [
    (
        "git log --oneline",
        "bash:git log --one*",
        "else it is about other options that begin so, too, as in `bash:git log *`",
    ),
    ("git log --oneline", "bash:git *", "name what it is to do, as in `bash:git log *`"),
    ("git log --oneline", "bash:git l*", "else it is about other words that begin so, too, as in `bash:git log *`"),
    ("git log --oneline", "bash:g*", "else it is about other programs that begin so, too, as in `bash:git log *`"),
    ("git push origin main", "bash:git *", "name what it is to do, as in `bash:git push origin main`"),
    ("docker ps -a", "bash:docker *", "name what it is to do, as in `bash:docker ps *`"),
    ("npm run a*", "bash:npm *", "name what it is to do, as in `bash:npm run a\\*`"),
]


@pytest.mark.parametrize(("command", "rule", "text"), EXAMPLES)
def test_what_is_refused_names_a_rule_that_is_kept_for_this_command(
    tmp_path: Path, command: str, rule: str, text: str
) -> None:
    editing = World(tmp_path).gate().editing_for(f"bash:{escape(command)}", "bash", "shell", command)
    assert editing is not None
    why = editing.why_not(rule)
    assert why.endswith(text) and editing.why_not(why.rpartition("as in `")[2].rstrip("`")) == ""


def test_an_edited_rule_may_cover_what_no_other_rule_covers_of_a_pipe(tmp_path: Path) -> None:
    judge = World(tmp_path).gate(allow=("bash:git log *",))
    command = "git log --oneline | head -3"
    rule = judge.rule_for("bash", "shell", command)
    editing = judge.editing_for(rule, "bash", "shell", command)
    assert editing is not None and editing.why_not("bash:head *") == ""
    assert "does not cover" in editing.why_not("bash:tail *")
    subject = PermissionSubject("bash", "shell", command, rule=rule, editing=editing)
    judge.remember(subject, PermissionReply("session", rule="bash:head *"))
    assert judge.judge("bash", "shell", "git log | head -20").decision == "allow"
    assert judge.judge("bash", "shell", "head -20").decision == "allow"
