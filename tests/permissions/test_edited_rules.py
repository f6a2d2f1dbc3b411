"""Rules that a person edits at a question: the prefix that is proposed, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.permissions.world import World

from cru.permissions import BadRule
from cru.permissions.gate import PermissionReply, PermissionSubject

PROPOSED = [
    ("git push origin main", "bash:git push *"), ("git log -3", "bash:git log *"), ("docker ps -a", "bash:docker ps *"),
    ("gh pr view 3", "bash:gh pr *"), ("git commit -m x", "bash:git commit -m x"), ("git add .", "bash:git add ."),
    ("python x.py", "bash:python x.py"), ("sudo git push x", "bash:sudo git push x"), ("npm run build", "bash:npm run build"),
    ("git push && make", "bash:git push && make"), ("git log --output=x", "bash:git log --output=x"),
    ("find . -exec rm {} ;", "bash:find . -exec rm {} ;"), ("xargs git push", "bash:xargs git push"), ("make", "bash:make"),
    ("env git push x", "bash:env git push x"), ("sh -c 'git push x'", "bash:sh -c 'git push x'"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "rule"), PROPOSED)
def test_a_prefix_is_proposed_where_it_makes_sense(tmp_path: Path, command: str, rule: str) -> None:
    gate = World(tmp_path).gate()
    editing = gate.editing_for(f"bash:{command}", "bash", "shell", command)
    assert editing is not None and editing.proposal == rule


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
