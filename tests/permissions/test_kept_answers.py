"""Which rule an answer to a question about a command stores: none where it would stand for more than the question showed."""

from __future__ import annotations

import pytest
from tests.permissions.test_commands import bash, gate
from tests.permissions.world import World


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git status -s", "bash:git status *"),
        ("git status --frobnicate", "bash:git status --frobnicate"),
        ("git commit -m x", "bash:git commit -m x"),
        ("git add -A", "bash:git add -A"),
        ("go fmt ./...", "bash:go fmt ./..."),
        ("cargo test", "bash:cargo test"),
        ("git diff", "bash:git diff"),
        ("git log --oneline", "bash:git log --oneline"),
        ("git show HEAD", "bash:git show HEAD"),
        ("go build ./...", "bash:go build ./..."),
        ("go vet ./...", "bash:go vet ./..."),
        ("npm test", "bash:npm test"),
        ("git push origin main", "bash:git push origin main"),
        ("git -c x=y log", "bash:git -c x=y log"),
        ("make", "bash:make"),
        ("rm *.pyc", "bash:rm \\*.pyc"),
        ("echo a\\b", "bash:echo a\\\\b"),
        ("git status && make", "bash:git status && make"),
        ("git status > x", "bash:git status > x"),
        ("make 2>&1 > /dev/null", "bash:make 2>&1 > /dev/null"),
        ("cat a > .claude/settings.json", ""),
        ("cat a >> '.git/config'", ""),
        ("{ make; } 2> ./.cru/config.toml", ""),
        ("echo > ~/.bashrc", ""),
        ("cat a > $X", ""),
        ("cd .claude && cat ../a > settings.json", ""),
        ("tee .claude/settings.json", ""),
        ("make | tee -a out.log '.git/hooks/pre-commit'", ""),
        ("cp evil .git/hooks/pre-commit", ""),
        ("cp -t.git/hooks evil", ""),
        ("cp --target-directory=.git/hooks evil", ""),
        ("mv /tmp/crush.json .", ""),
        ("cp /tmp/.bashrc ~", ""),
        ("cp evil $X", ""),
        ("cp evil .g?t/config", ""),
        ("rm *.json", ""),
        ("cd .git && cp ../evil config", ""),
        ("cd .. && rm project/src/a.py", ""),
        ("sudo tee .cru/config.toml", ""),
        ("sh -c 'tee .claude/settings.json'", ""),
        ("echo .git/config | xargs rm", ""),
        ("dd if=evil of=.git/config", ""),
        ("sed -i s/a/b/ ~/.bashrc", ""),
        ("curl -o .claude/settings.json https://e.org", ""),
        ("some-tool --out=.cru/config.toml", ""),
        ("git checkout -- .claude/settings.json", ""),
        ("tee 'a", ""),
        ("cp src/a.py src/b.py", "bash:cp src/a.py src/b.py"),
        ("rm -rf build/*", "bash:rm -rf build/\\*"),
        ("make | tee out.log", "bash:make | tee out.log"),
        ("mkdir -p build", "bash:mkdir -p build"),
        ("cd src && make", "bash:cd src && make"),
        ("python .claude/skills/pdf/run.py x.pdf", "bash:python .claude/skills/pdf/run.py x.pdf"),
        ("cat .git/config", "bash:cat .git/config"),
        ("ssh -i ~/.ssh/key host uptime", "bash:ssh -i ~/.ssh/key host uptime"),
        ("git status; git log", "bash:git status; git log"),
        ("cd /nowhere/project && npm test", "bash:npm test"),
        ("cd /nowhere && npm test", "bash:cd /nowhere && npm test"),
        ("# all of them\nLC_ALL=C timeout 60 npm test 2>&1 || true", "bash:npm test"),
        ("git --no-pager status # now", "bash:git status *"),
        ("LC_ALL=C grep 'a b' c", "bash:LC_ALL=C grep 'a b' c"),
        ("LC_ALL=C rm \\*.py", "bash:LC_ALL=C rm \\\\\\*.py"),
        ("cd /nowhere/project && tee .claude/settings.json", ""),
        ("cd /nowhere/project && make x && make y", "bash:cd /nowhere/project && make x && make y"),
        ("one .g\"$(cat <<'EOF'\nit\nEOF\n)\"/hooks/x", ""),
        ("one --out=\"$(cat <<'EOF'\n.git/hooks/x\nEOF\n)\"", ""),
        ("(cd src; echo x)", "bash:(cd src; echo x)"),
        ("(umask 0)", "bash:(umask 0)"),
        ("[ -d src ] && cd src", "bash:[ -d src ] && cd src"),
        ("[ -f x ] && rm y", "bash:[ -f x ] && rm y"),
        ("LC_ALL=C [ -f x ] && rm y", "bash:LC_ALL=C [ -f x ] && rm y"),
        ("LC_ALL=C test -f x && rm y", "bash:LC_ALL=C test -f x && rm y"),
        ("2>/dev/null test -f x && rm y", "bash:2>/dev/null test -f x && rm y"),
        ("time -p test -f x && rm y", "bash:time -p test -f x && rm y"),
        ("true || rm y", "bash:true || rm y"),
        ("false && rm y", "bash:false && rm y"),
        ("exit 0; rm y", "bash:exit 0; rm y"),
        ("command -v x && rm y", ""),
        ("which x || npm test", "bash:which x || npm test"),
        ("echo a && sleep 1; npm test", "bash:npm test"),
        ("cd /nowhere/project && rm y", "bash:rm y"),
        ("cd /nowhere/project && cp a b 2>/dev/null", "bash:cp a b"),
        ("cd /nowhere/project && rm .git/hooks/x", ""),
        ("git -C /nowhere/project status -s", "bash:git status *"),
        ("if make; then true; fi", "bash:if make; then true; fi"),
        ("time -- make", "bash:make"),
        ("a\nb", ""),
        ("x" * 301, ""),
        ("", ""),
    ],
)
def test_an_answer_stores_the_exact_command_or_a_known_subcommand(command: str, rule: str) -> None:
    found = gate().rule_for("bash", "shell", command)
    assert found == rule
    if found:
        assert bash(gate(allow=(found,)), command).decision == "allow"


def test_no_answer_is_kept_for_a_command_that_writes_through_a_link_to_a_protected_folder(world: World) -> None:
    assert world.gate().rule_for("bash", "shell", "cp evil hook/config") == ""
    assert world.gate().rule_for("bash", "shell", "cp evil inner/config") == "bash:cp evil inner/config"
