"""A deny or ask rule means the options that it names as a set, in any spelling and place; an allow rule means what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.guard.rules.test_commands import bash, gate
from tests.core.guard.rules.world import World
from tests.core.hooks.dialect_world import about

from cru.core.base.files.glob import parse_glob
from cru.core.guard.rules.allowed_commands import matches_command
from cru.core.guard.rules.command_matching import SearchedCommand
from cru.core.guard.shell.analysis import analyze
from cru.core.guard.shell.programs import COMMANDS
from cru.core.guard.shell.simplify import simplify
from cru.core.hooks.dialects.claude.permissions import translate_rules

HIT = [
    ("git push --force *", "git push -f"), ("git push --force *", "git push -f origin main"),
    ("git push --force *", "git push -uf origin"),
    ("git push --force *", "git -C sub push -f"), ("git push --force *", "sudo git push -f"), ("git push --force *",
        "sh -c 'git push -f'"),
    ("git push --force *", "make && git push -f"), ("git push --force *", "/usr/bin/git push -f"),
    ("git push --force *", "git push --forc"),
    ("git push --force", "git push -f"), ("git push * --force *", "git push origin -f"), ("git push *--force*",
        "git push origin main -f"),
    ("git push *--force*", "git push --force-with-lease"), ("git push --delete *", "git push -d origin x"),
    ("git commit --no-verify *", "git commit -nm x"), ("git branch --delete *", "git branch -D x"), ("git add --all *", "git add -A"),
    ("rm --recursive --force *", "rm -fr x"), ("rm --recursive --force *", "rm -Rf x"), ("rm --force *", "rm -rf x"),
    ("chmod --recursive *", "chmod -R a+w x"), ("docker rm --force *", "docker rm -fv x"), ("curl --insecure *", "curl -sk https://h"),
    ("npm install --global *", "npm install -g x"),
]  # fmt: skip
MISSED = [
    ("git push --force *", "git push"), ("git push --force *", "git push origin f"), ("git push --force *", "git push -ofast"),
    ("git push --force *", "git push -u origin x"), ("git push *--force*", "git push origin -- -f"), ("git push *--force*",
        "git fetch -f"),
    ("git commit --no-verify *", "git commit -mn"), ("git commit --all *", "git commit -m 'git add -a'"), ("rm --force *", "rm -r x"),
    ("git push -f *", "git push --follow-tags"), ("chmod --recursive *", "chmod -r x"), ("curl --insecure *", "curl -ok https://h"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "command", "is_hit"), [*((*row, True) for row in HIT), *((*row, False) for row in MISSED)]
)
def test_deny_and_ask_rules_hold_for_the_letter_that_means_the_same(
    tmp_path: Path, rule: str, command: str, is_hit: bool
) -> None:
    world = World(tmp_path)
    assert (world.gate("trust", deny=(f"bash:{rule}",)).judge("bash", "shell", command).decision == "deny") is is_hit
    assert (world.gate("trust", ask=(f"bash:{rule}",)).judge("bash", "shell", command).decision == "ask") is is_hit


def test_an_allow_rule_covers_what_it_writes(tmp_path: Path) -> None:
    gate = World(tmp_path).gate(allow=("bash:git push --force *", "bash:rm --recursive *"))
    assert gate.judge("bash", "shell", "git push --force origin").decision == "allow"
    assert gate.judge("bash", "shell", "git push -f origin").decision == "ask"
    assert gate.judge("bash", "shell", "rm -r x").decision == "ask"


def test_every_letter_of_the_table_is_read() -> None:
    for key, facts in COMMANDS.items():
        for option, letters in ((f"--{name}", letters) for name, letters in facts.letters.items()):
            for letter in letters:
                for rule, command in ((option, f"-{letter}"), (f"-{letter}", f"-{letter}x y")):
                    assert is_hit(f"{key} {rule} *", f"{key} {command} a"), (key, option, letter)
    assert all(facts.letters or facts.harmless is not None for facts in COMMANDS.values() if facts.letters_with_value)


def is_hit(rule: str, command: str) -> bool:
    return SearchedCommand(analyze(command)).matches(parse_glob(rule))


SAME = {
    "rm -rf *": ["rm -rf x", "rm -fr x", "rm -r -f x", "rm -f -r x", "rm -rfv x", "rm -vfr x", "rm -Rf x", "rm --recursive --force x",
                 "rm -r --force x", "rm --recurs -f x", "rm --recurs --forc x", "rm --r --f x", "rm x -rf", "rm x -r y -f", "rm -r x -f",
                 "rm -v -r -f x", "rm -rf -- x", "rm -fr", "sudo rm -fr x", "sh -c 'rm -fr x'", "sh -c 'cd y; rm -r -f x'",
        "/bin/rm -fr x",
                 "wrap rm -fr x", "wrap 'rm -fr x'", "true && rm -fr x", "xargs rm -fr", "find . -exec rm -fr {} +", "env A=1 rm -f -r x",
                 "docker exec c rm -fr x", "rm -f $X -r", "rm -fr x > log", "env -S 'rm -fr x'", "uv run rm --force -r x",
        "wrap x rm a -- rm -fr y",
        "wrap x rm -- a rm -- rm -f y -r"],
    "rm -rf /": ["rm -fr /", "rm -r -f /", "rm / -rf", "rm -rfv /", "rm -rf --no-preserve-root /", "rm -rf -- /", "rm -v -fr /"],
    "rm -r -f *": ["rm -rf x", "rm -fr x", "rm x --force --recursive"],
    "rm --recursive --force *": ["rm -rf x", "rm x -fr", "rm --force x --recursive"],
    "rm -rf": ["rm -fr", "rm -r -f", "rm -fr x"],
    "rm -rf*": ["rm -rf x", "rm -rfv x", "rm -fr x", "rm -f x -r", "rm --recursive --force x"],
    "rm * -rf *": ["rm -rf x", "rm x -fr", "rm -f x -r"],
    "git push -f *": ["git push -f", "git push --force", "git push -uf o x", "git push o x -f", "git push o x --force",
        "git -C s push -f",
                      "git push --forc", "git push -o x -f", "git --no-pager push o --force", "git -c a=b push -fu o"],
    "git push --force *": ["git push o --force", "git push o x -f", "git push -fu o", "git push --force=x"],
    "git push * --force *": ["git push o -f", "git push o x --force", "git push --force o"],
    "git push*--force*": ["git push -f", "git push o --forc", "git push --force-with-lease"],
    "git push --force-with-lease *": ["git push o --force-with-lease", "git push --force-with-lease=x o", "git push --force-w o"],
    "git clean -fdx *": ["git clean -xdf", "git clean -f -d -x", "git clean -xfd .", "git clean --force -dx", "git clean -fdxq",
        "git clean -x -fd"],
    "git add -A*": ["git add --all", "git add -A", "git add . -A", "git add -Av", "git add --al", "git -C s add --all"],
    "git add --all *": ["git add -A", "git add . --all", "git add -vA"],
    "git branch -D *": ["git branch -D x", "git branch x -D", "git branch -d -f x", "git branch -df x", "git branch --delete --force x"],
    "git commit -n *": ["git commit --no-verify -m x", "git commit -m x -n", "git commit -anm x", "git commit -m x --no-ver"],
    "chmod -R *": ["chmod -R 7 x", "chmod --recursive 7 x", "chmod 7 x -R", "chmod -vR 7 x", "chmod --recurs 7 x"],
    "chmod -R 777 *": ["chmod 777 -R x", "chmod -vR 777 x", "chmod --recursive 777 x"],
    "kill -9 *": ["kill -9 1", "kill -KILL 1", "kill -SIGKILL 1", "kill -s KILL 1", "kill -s SIGKILL 1", "kill -s 9 1", "kill -n 9 1",
                  "kill --signal KILL 1", "kill --signal=9 1", "kill -kill 1", "kill -sKILL 1", "sudo kill -KILL 1"],
    "kill -KILL *": ["kill -9 1", "kill -s 9 1"],
    "kill -s KILL *": ["kill -9 1", "kill -KILL 1"],
    "pkill -9 *": ["pkill -KILL x", "pkill --signal KILL x"],
    "curl -X POST *": ["curl -X POST h", "curl -XPOST h", "curl --request POST h", "curl --request=POST h", "curl h -X POST",
        "curl -sXPOST h",
                       "curl -sX POST h", "curl h --request POST -d x", "curl -s h -X POST"],
    "curl --request POST *": ["curl -XPOST h", "curl -X POST h", "curl h -X POST"],
    "curl --request=POST *": ["curl -XPOST h", "curl -X POST h", "curl h -X POST"],
    "curl -X *": ["curl -X PUT h", "curl -XPUT h", "curl --request PUT h", "curl h -sX PUT"],
    "curl -d *": ["curl h -d x", "curl h --data x", "curl h --data=x", "curl -sd x h"],
    "npm install -g *": ["npm install --global x", "npm install x -g", "npm install x --global"],
    "docker rm -f *": ["docker rm x -f", "docker rm --force x", "docker rm -vf x", "docker --context y rm -f x"],
    "sed -i *": ["sed -i s/a/b/ x", "sed s/a/b/ x -i", "sed --in-place s/a/b/ x", "sed -i.bak s/a/b/ x", "sed -ni s/a/b/ x",
        "sed -Ei s/a/b/ x"],
    "tool -ab *": ["tool -ba x", "tool -a -b x", "tool x -b -a", "tool -cab x", "sudo tool -b -a"],
    "tool --long *": ["tool x --long", "tool --long=y", "tool --lo x", "wrap tool x --long"],
    "tool -name x *": ["tool -name x y", ],
    "find * -delete": ["find . -delete", "find . -name x -delete", "find -delete", "find . -delete -print"],
    "sudo rm -rf *": ["sudo rm -fr x", "sudo rm x -r -f"],
    "bash -lc *": ["bash -cl x", "bash -l -c x", "bash -c -l x"],
    "git -c *": ["git -c a=b log", "git --no-pager -c a=b log"],
    "* --force *": ["git push x --force", "rm x --force", "git push -f x", "rm -rf x"],
    "g*t push -f *": ["git push x -f", "git push --force"],
    "pip install -U *": ["pip3 install x -U", "pip3.11 install -qU x", "sudo pip3 install x -U"],
    "r* -rf *": ["rm -fr x"],
}  # fmt: skip
"""Rule: commands that it means, too."""
DIFFERENT = {
    "rm -rf *": ["rm -r x", "rm -f x", "rm -f -- -r", "rm -- -rf", "rm x", "rm --recursive x", "echo rm -fr x", "git rm -rf x",
        "rmdir -rf x",
                 "grep -rf x y", "git commit -m 'rm -fr x'", "rm -r x; ls -f", "ls -rf x", "rm -r x && cp -f a b", "rm --force x",
        "rm r f"],
    "rm -rf /": ["rm -rf /tmp/x", "rm -rf x", "rm -r /", "rm -fr ."],
    "git push -f *": ["git push", "git push origin main", "git push --force-with-lease", "git push --follow-tags", "git push -u o f",
        "git push -of",
                      "git push -o -f", "git push -- -f", "git fetch -f", "git push --no-verify", "wrap -f git push"],
    "git push --force *": ["git push --force-with-lease o", "git push o --force-if-includes"],
    "git push --force-with-lease *": ["git push --force o", "git push -f o"],
    "git clean -fdx *": ["git clean -fd", "git clean -n", "git clean -fd -e x", "git clean -fde x"],
    "git add -A*": ["git add a", "git add -p", "git add -u", "git add --patch", "git add -- -A", "git add .", "git commit --all"],
    "git branch -D *": ["git branch -d x", "git branch D", "git branch -f x"],
    "git branch -C *": ["git branch -D x", "git branch -f x", "git branch -c x"],
    "git commit -n *": ["git commit -m x", "git commit -mn", "git commit -m -n", "git commit --amend --no-edit", "git commit -F n"],
    "chmod -R *": ["chmod 7 x", "chmod -r x", "chmod --reference=y x"],
    "kill -9 *": ["kill 9", "kill -15 1", "kill -s TERM 1", "kill -l", "kill 1", "kill -TERM 9"],
    "curl -X POST *": ["curl h", "curl -X PUT h", "curl -XPUT h", "curl --request GET h", "curl -d POST h", "curl h -H 'X: POST'",
        "curl -s POST h"],
    "curl -X *": ["curl h", "curl -x p h", "curl -H X h", "curl -oX h", "curl -o -X h"],
    "npm install -g *": ["npm install x", "npm install --save x"],
    "tool -ab *": ["tool -a x", "tool ab", "tool -- -ab", "other -ab", "tool -a x; other -b"],
    "find * -delete": ["find . -name delete", "find . -type d -empty -ls", "find . -depth -empty -type l"],
    "git -c *": ["git commit -c HEAD", "git switch -c x", "git log"],
    "sudo -u *": ["sudo git push -u o"],
    "python -c *": ["python x.py -c y", "python -m x -c y"],
    "sh -c *": ["sh x.sh -c y"],
}  # fmt: skip
"""Rule: commands that it does not mean."""


@pytest.mark.parametrize("rule", SAME)
def test_a_rule_means_its_options_however_they_are_written(rule: str) -> None:
    assert [command for command in SAME[rule] if not is_hit(rule, command)] == []


@pytest.mark.parametrize("rule", DIFFERENT)
def test_a_rule_means_no_other_options(rule: str) -> None:
    assert [command for command in DIFFERENT[rule] if is_hit(rule, command)] == []


@pytest.mark.parametrize("rule", SAME)
def test_an_allow_rule_covers_no_other_spelling(rule: str) -> None:
    """What the rule covers of the table it writes out: every other spelling asks as it would without the rule's options."""
    judge, plain = gate(allow=(f"bash:{rule}",)), parse_glob(rule)
    covered = [command for command in SAME[rule] if bash(judge, command).decision == "allow"]
    assert [command for command in covered if not matches_command(plain, simplify(command, "") or command)] == []


def test_rules_of_claude_are_read_alike(tmp_path: Path) -> None:
    facts = about(tmp_path)
    for text, command in (
        ("Bash(rm -rf:*)", "rm x -f -r"),
        ("Bash(git push --force:*)", "git push o -f"),
        ("Bash(rm -rf /)", "rm -fr /"),
    ):
        (rule,), problems = translate_rules([text], "deny", facts)
        assert not problems and bash(gate(mode="trust", deny=(rule,)), command).decision == "deny"


LETTER_SETS = st.lists(st.sampled_from("abdfrvxzR"), min_size=1, max_size=6, unique=True)


@given(LETTER_SETS, st.data())
def test_every_order_and_grouping_of_letters_gives_the_same_verdict(letters: list[str], data: st.DataObject) -> None:
    rule = f"{data.draw(st.sampled_from(['rm', 'tool', 'git clean', 'sudo tool']))} -{''.join(letters)} *"
    program = rule.partition(" -")[0]
    order = data.draw(st.permutations([*letters, *data.draw(st.sampled_from(["", "q", "qs"]))]))
    words, group = ["x", "y"], ""
    for at, letter in enumerate(order):
        group += letter
        if at == len(order) - 1 or data.draw(st.booleans()):
            words.insert(data.draw(st.integers(0, len(words))), f"-{group}")
            group = ""
    assert is_hit(rule, f"{program} {' '.join(words)}")
    missing = f"{program} x {' '.join(word for word in words if letters[0].lower() not in word.lower())}"
    assert is_hit(rule, missing) is False


@pytest.mark.parametrize("url", ["https://example.com/a", "https://EXAMPLE.com/A", "HTTPS://Example.com:443/a"])
def test_a_rule_on_an_address_holds_whatever_its_capitals(tmp_path: Path, url: str) -> None:
    gate = World(tmp_path).gate("trust", deny=("fetch:https://Example.com/*",))
    assert gate.judge("fetch", "fetch", url).decision == "deny"
    assert gate.judge("fetch", "fetch", "https://example.org/").decision == "allow"
