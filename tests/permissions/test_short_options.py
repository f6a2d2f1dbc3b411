"""A deny or ask rule on a long option holds for its short form, too; an allow rule does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.permissions.world import World

from cru.permissions.short_options import SHORT, TAKING, with_long_options

HIT = [
    ("git push --force *", "git push -f"), ("git push --force *", "git push -f origin main"),
    ("git push --force *", "git push -uf origin"),
    ("git push --force *", "git -C sub push -f"), ("git push --force *", "sudo git push -f"), ("git push --force *", "sh -c 'git push -f'"),
    ("git push --force *", "make && git push -f"), ("git push --force *", "/usr/bin/git push -f"),
    ("git push --force *", "git push --forc"),
    ("git push --force", "git push -f"), ("git push * --force *", "git push origin -f"), ("git push *--force*", "git push origin main -f"),
    ("git push *--force*", "git push --force-with-lease"), ("git push --delete *", "git push -d origin x"),
    ("git commit --no-verify *", "git commit -nm x"), ("git branch --delete *", "git branch -D x"), ("git add --all *", "git add -A"),
    ("rm --recursive --force *", "rm -fr x"), ("rm --recursive --force *", "rm -Rf x"), ("rm --force *", "rm -rf x"),
    ("chmod --recursive *", "chmod -R a+w x"), ("docker rm --force *", "docker rm -fv x"), ("curl --insecure *", "curl -sk https://h"),
    ("npm install --global *", "npm install -g x"),
]  # fmt: skip
MISSED = [
    ("git push --force *", "git push"), ("git push --force *", "git push origin f"), ("git push --force *", "git push -ofast"),
    ("git push --force *", "git push -u origin x"), ("git push *--force*", "git push origin -- -f"), ("git push *--force*", "git fetch -f"),
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


def test_every_letter_of_the_table_is_read_and_none_takes_a_value() -> None:
    for key, options in SHORT.items():
        for option, letters in options.items():
            for letter in letters:
                assert with_long_options((*key.split(), f"-{letter}"), [option]) == (*key.split(), option)
                assert letter not in TAKING.get(key, "")
    assert TAKING.keys() <= SHORT.keys()


@pytest.mark.parametrize("url", ["https://example.com/a", "https://EXAMPLE.com/A", "HTTPS://Example.com:443/a"])
def test_a_rule_on_an_address_holds_whatever_its_capitals(tmp_path: Path, url: str) -> None:
    gate = World(tmp_path).gate("trust", deny=("fetch:https://Example.com/*",))
    assert gate.judge("fetch", "fetch", url).decision == "deny"
    assert gate.judge("fetch", "fetch", "https://example.org/").decision == "allow"
