"""Matchers find what `re` finds, in this process or in a child, and a search that would not end makes the hook run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.core.hooks.crush_world import Made, call, config
from tests.kit.waiting import ends_soon

from cru.core.base.process import forked
from cru.core.hooks.errors import SlowRegex
from cru.core.hooks.model.result import HookRun
from cru.core.hooks.parsing import bounded_regex
from cru.core.hooks.parsing.bounded_regex import check_regex, finds_any

LONG = 4096
FOUND = [
    ("", "", True),
    ("^$", "", True),
    ("x", "", False),
    ("^(Bash|Edit|Write)$", "Edit", True),
    ("mcp__.*__.*delete.*user.*", "mcp__github__delete_a_user", True),
    ("mcp__.*__.*delete.*user.*", "mcp__github__get_user", False),
    ("^(?!Bash$).*$", "Bash", False),
    ("^(?!Bash$).*$", "Bash2", True),
    ("(?i)b.*a.*s.*h", "xBASHx", True),
    (r"(?P<n>a)(?P=n)+", "aa", True),
    (r"(a)\1.*b", "aab", True),
    (r"(a*)(b*)\1!", "aabaa!", True),
    ("(?>a+)ab", "aaab", False),
    ("[à-ü]+.*[à-ü]+", "é é", True),
    (r"^\w+$", "été", True),
    ("a{3}b*c*", "aa", False),
    ("(?<=__)x", "a__x", True),
    (r"x\Z", "x\n", False),
    ("x$", "x\n", True),
    ("^Read$", "Read" * LONG, False),
    ("^(Read)", "Read" * LONG, True),
    (".*_.*!$", "_" * 2000 + "!", True),
]
ENDLESS = [(".*_.*_.*_.*_!", "_" * LONG), ("(.*)(.*)(.*)(.*)!", "a" * LONG), (r"(\w*)(\w*)\1\2.*!", "a" * LONG)]


@pytest.mark.parametrize("steps", [0, bounded_regex.MOST_STEPS])
@pytest.mark.parametrize(("pattern", "text", "is_found"), FOUND)
def test_a_matcher_finds_what_re_finds(
    pattern: str, text: str, is_found: bool, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_regex, "MOST_STEPS", steps)  # with 0, the search runs in a child process
    assert check_regex(pattern) == ""
    assert finds_any(pattern, [text]) is is_found


@pytest.mark.parametrize("steps", [0, bounded_regex.MOST_STEPS])
@pytest.mark.parametrize("text", ["", "a", "a" * 300, "a" * 20_000])
def test_a_wrong_expression_is_an_error(text: str, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_regex, "MOST_STEPS", steps)
    with pytest.raises(re.error):
        finds_any("(a", [text])


@pytest.fixture
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child process that ends at once. The searches would take hours."""
    monkeypatch.setattr(forked, "SECONDS", 0.01)
    monkeypatch.setattr(bounded_regex, "_too_slow", set())


@pytest.mark.usefixtures("short_limit")
@pytest.mark.parametrize(("pattern", "text"), ENDLESS)
def test_an_endless_search_is_ended_and_not_tried_again(
    pattern: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_regex(pattern) == ""
    with ends_soon(), pytest.raises(SlowRegex, match=re.escape(repr(pattern))):
        finds_any(pattern, [text])
    monkeypatch.delattr(bounded_regex, "run_in_fork")
    with pytest.raises(SlowRegex):
        finds_any(pattern, [text + "_"])
    assert finds_any(pattern, ["__" if "_!" in pattern else "aa"]) is False  # short names are still searched


@pytest.mark.parametrize("error", [OSError("no process left"), forked.WorkFailed("MemoryError")])
def test_without_a_child_process_the_matcher_counts_as_slow(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(work: object) -> bool:
        raise error

    monkeypatch.setattr(bounded_regex, "run_in_fork", fails)
    monkeypatch.setattr(bounded_regex, "_too_slow", set())
    with pytest.raises(SlowRegex):
        finds_any("a*b*c*!", ["a" * LONG])


@pytest.mark.usefixtures("short_limit")
def test_a_guard_whose_matcher_is_too_slow_decides_on_every_call(tmp_path: Path) -> None:
    pattern = ENDLESS[0][0]
    hooks = Made(tmp_path, config({"command": "guard", "matcher": pattern}), {"guard": HookRun(2, stderr="no")})
    assert call(hooks, "bash").decision == "none"
    said = call(hooks, "_" * LONG)
    assert (said.decision, said.reason) == ("deny", "no")
    assert [notice for notice in said.notices if pattern in notice and "takes too long" in notice]
