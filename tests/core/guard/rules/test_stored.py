"""What is kept in the home folder: grants.json and trust.json."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cru.core.guard import BadRule, NotStored
from cru.core.guard.rules.grants import Grants
from cru.core.guard.trust.accepted_files import TrustStore

ROOT = Path("/some/project")


def texts(grants: Grants) -> list[str]:
    return [rule.text for rule in grants.rules()]


def test_grants_are_kept_by_scope(tmp_path: Path) -> None:
    path = tmp_path / "home" / "grants.json"
    grants = Grants(path, ROOT)
    assert texts(grants) == []
    grants.add("session", "bash:a")
    assert not path.exists()
    grants.add("project", "bash:b")
    grants.add("always", "bash:c")
    grants.add("always", "bash:c")
    assert sorted(texts(grants)) == ["bash:a", "bash:b", "bash:c"]
    kept = {"version": 1, "always": ["bash:c"], "projects": {str(ROOT): ["bash:b"]}, "hooks": []}
    assert json.loads(path.read_text()) == kept
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(texts(Grants(path, ROOT))) == ["bash:b", "bash:c"]
    assert texts(Grants(path, tmp_path)) == ["bash:c"]


def test_a_grant_can_be_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    grants = Grants(path, ROOT)
    grants.add("session", "bash:a")
    grants.add("project", "bash:b")
    assert grants.remove("bash:b") and grants.remove("bash:a") and not grants.remove("bash:a")
    assert texts(grants) == [] == texts(Grants(path, ROOT))
    assert json.loads(path.read_text())["projects"] == {}


def test_two_processes_do_not_lose_each_others_grants(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    code = (
        "import sys; from pathlib import Path; from cru.core.guard.rules.grants import Grants\n"
        "grants = Grants(Path(sys.argv[1]), Path('/p'))\n"
        "for n in range(10): grants.add('always', f'bash:{sys.argv[2]} {n}')\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in "ab"]
    assert [one.wait(60) for one in running] == [0, 0]
    assert len(texts(Grants(path, ROOT))) == 20


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 1, "always": 5}', b'{"always": [1]}', b"\xff"])
def test_a_corrupt_file_is_kept_aside_and_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "grants.json"
    path.write_bytes(content)
    grants = Grants(path, ROOT)
    assert texts(grants) == []
    (problem,) = grants.problems
    assert problem.where == str(path) and "grants.json.corrupt-1" in problem.hint
    assert (tmp_path / "grants.json.corrupt-1").read_bytes() == content
    grants.add("always", "bash:a")
    path.write_bytes(content)
    again = Grants(path, ROOT)
    again.add("always", "bash:b")
    assert (tmp_path / "grants.json.corrupt-2").read_bytes() == content
    assert texts(Grants(path, ROOT)) == ["bash:b"]
    assert len(again.problems) == 1


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    path.write_text('{"version": 2, "always": {"new": "shape"}}')
    grants = Grants(path, ROOT)
    assert texts(grants) == [] and "newer version" in grants.problems[0].message
    with pytest.raises(NotStored, match="newer version"):
        grants.add("always", "bash:a")
    assert texts(grants) == ["bash:a"]  # it holds for this session
    assert json.loads(path.read_text())["version"] == 2


def test_a_stored_rule_that_cannot_be_read_is_reported_and_the_others_hold(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    path.write_text('{"version": 1, "always": ["Bash(x)", "bash:a"]}')
    grants = Grants(path, ROOT)
    assert texts(grants) == ["bash:a"]
    assert "Bash(x)" in grants.problems[0].message


def test_a_bad_rule_is_not_stored(tmp_path: Path) -> None:
    grants = Grants(tmp_path / "grants.json", ROOT)
    with pytest.raises(BadRule):
        grants.add("always", "bash:")
    assert not (tmp_path / "grants.json").exists()


def test_a_home_that_cannot_be_written_still_grants_for_the_session(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    grants = Grants(tmp_path / "file" / "grants.json", ROOT)
    with pytest.raises(NotStored, match="cannot be written"):
        grants.add("always", "bash:a")
    assert texts(grants) == ["bash:a"]


def test_trust_is_for_one_content_of_one_file(tmp_path: Path) -> None:
    file, other = tmp_path / "config.toml", tmp_path / "other.toml"
    file.write_text("a = 1\n")
    other.write_text("a = 1\n")
    trust = TrustStore(tmp_path / "home" / "trust.json")
    assert not trust.is_trusted(file)
    trust.trust(file)
    assert trust.is_trusted(file) and not trust.is_trusted(other)
    assert (
        trust.is_trusted(file, "a = 1\n")
        and trust.is_trusted(file, b"a = 1\n")
        and not trust.is_trusted(file, "a = 2\n")
    )
    file.write_text("a = 2\n")
    assert not trust.is_trusted(file)
    trust.trust(file)
    assert TrustStore(tmp_path / "home" / "trust.json").is_trusted(file)
    assert trust.revoke(file) and not trust.revoke(file) and not trust.is_trusted(file)


def test_trust_follows_links_to_the_file_itself(tmp_path: Path) -> None:
    file, link = tmp_path / "config.toml", tmp_path / "link.toml"
    file.write_text("a = 1\n")
    link.symlink_to(file)
    trust = TrustStore(tmp_path / "trust.json")
    trust.trust(link)
    assert trust.is_trusted(file)


def test_a_missing_file_is_never_trusted(tmp_path: Path) -> None:
    trust = TrustStore(tmp_path / "trust.json")
    with pytest.raises(NotStored, match="cannot be read"):
        trust.trust(tmp_path / "none")
    trust.trust(tmp_path / "later", b"x")
    assert not trust.is_trusted(tmp_path / "later")


def test_a_corrupt_trust_file_trusts_nothing_and_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("a = 1\n")
    (tmp_path / "trust.json").write_text("{")
    trust = TrustStore(tmp_path / "trust.json")
    assert not trust.is_trusted(file)
    assert len(trust.problems) == 1 and (tmp_path / "trust.json.corrupt-1").exists()
    trust.trust(file)
    assert trust.is_trusted(file)
