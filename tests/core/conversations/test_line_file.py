from __future__ import annotations

import json
import stat
import time
from pathlib import Path

import pytest
from tests.core.conversations.support import LineFile

from cru.core.conversations import StoreUnwritable
from cru.core.conversations.line_file import DAY, RecordLimits, make_redactor


def test_nothing_is_made_before_the_first_write_and_the_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    lines = LineFile(path)
    assert not path.exists()
    lines.write(b'{"a":1}\n')
    lines.close()
    lines.write(b'{"a":2}\n')
    assert path.read_bytes() == b'{"a":1}\n{"a":2}\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_keeps_as_many_files_as_asked_the_newest_first(tmp_path: Path) -> None:
    lines = LineFile(tmp_path / "j", RecordLimits(20, 3))
    for number in range(10):
        lines.write(b"%09d\n" % number)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["j", "j.1", "j.2"]
    assert (tmp_path / "j").read_bytes() == b"000000008\n000000009\n"
    assert (tmp_path / "j.2").read_bytes() == b"000000004\n000000005\n"


def test_a_file_that_stays_open_is_put_aside_when_its_oldest_line_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = LineFile(tmp_path / "j", RecordLimits(1 << 20, 2, seconds=2 * DAY))
    begun, passed = time.time(), 0.0
    monkeypatch.setattr(time, "time", lambda: begun + passed)
    monkeypatch.setattr(time, "monotonic", lambda: begun + passed)
    rotated = []
    for passed in (0.0, DAY - 10.0, DAY + 10.0, DAY + 20.0):
        rotated.append(lines.write(b'{"time":%d}\n' % (begun + passed)))
    assert rotated == [False, False, True, False]
    assert (tmp_path / "j.1").read_bytes().count(b"\n") == 2


def test_a_line_over_the_limit_is_written_whole(tmp_path: Path) -> None:
    lines = LineFile(tmp_path / "j", RecordLimits(4, 2))
    lines.write(b"longer than that\n")
    lines.write(b"next\n")
    assert (tmp_path / "j.1").read_bytes() == b"longer than that\n"


def test_keeping_one_file_starts_over(tmp_path: Path) -> None:
    lines = LineFile(tmp_path / "one", RecordLimits(4, 1))
    assert [lines.write(b"aaaa\n"), lines.write(b"bbbb\n")] == [False, True]
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
    assert (tmp_path / "one").read_bytes() == b"bbbb\n"


def test_two_writers_do_not_rotate_twice(tmp_path: Path) -> None:
    a, b = (LineFile(tmp_path / "j", RecordLimits(16, 5)) for _ in range(2))
    a.write(b"aaaaaaa\n")
    b.write(b"bbbbbbb\n")
    a.write(b"ccccccc\n")
    b.write(b"ddddddd\n")
    a.write(b"eeeeeee\n")
    kept = b"".join((tmp_path / n).read_bytes() for n in ("j.2", "j.1", "j") if (tmp_path / n).exists())
    assert sorted(kept.split()) == [x * 7 for x in (b"a", b"b", b"c", b"d", b"e")]


def test_a_torn_line_is_ended_first(tmp_path: Path) -> None:
    (tmp_path / "j").write_bytes(b'{"torn')
    LineFile(tmp_path / "j").write(b"{}\n")
    assert (tmp_path / "j").read_bytes() == b'{"torn\n{}\n'


def test_a_missing_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreUnwritable, match="No such file"):
        LineFile(tmp_path / "no" / "j").write(b"{}\n")


SECRETS = ["sk-1234567890", 'quo"te\\back', "pässwörter", "short", "", "1234567890", "sk-1234567890-longer"]


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("secret", [s for s in SECRETS if len(s) >= 8])
def test_a_secret_is_found_plain_inside_text_and_in_json_within_json(secret: str, ascii_only: bool) -> None:
    redact = make_redactor(SECRETS)
    inner = json.dumps({"args": [f"x{secret}y"]}, ensure_ascii=ascii_only)
    line = json.dumps({"a": f"<{secret}>", "b": inner, secret: True, "n": 5}, ensure_ascii=ascii_only).encode()
    out = redact(line + b"\n" + line + b"\n")
    first, second, end = out.split(b"\n")
    assert first == second and end == b""
    got = json.loads(first)
    assert got["a"] == "<[secret]>" and json.loads(got["b"]) == {"args": ["x[secret]y"]}
    assert got["[secret]"] is True and got["n"] == 5


def test_short_secrets_and_clean_lines_are_left_alone() -> None:
    redact = make_redactor(SECRETS)
    line = b'{"a": "short",  "spaces kept": 1.50}\n'
    assert redact(line) is line


def test_numbers_and_broken_lines_are_redacted_too() -> None:
    redact = make_redactor(SECRETS)
    assert redact(b'{"n":1234567890}\n') == b'{"n":"[secret]"}\n'
    assert redact(b"not json sk-1234567890\n") == b"not json [secret]\n"


def test_an_escape_before_a_secret_stays_valid_json() -> None:
    redact = make_redactor(["nfoobarbaz"])
    assert json.loads(redact(b'{"a":"\\nfoobarbaz","b":"nfoobarbaz"}')) == {"a": "\nfoobarbaz", "b": "[secret]"}


def test_a_line_file_redacts_what_it_writes(tmp_path: Path) -> None:
    LineFile(tmp_path / "j", redact=make_redactor(["sk-1234567890"])).write(b'{"env":"K=sk-1234567890"}\n')
    assert (tmp_path / "j").read_bytes() == b'{"env":"K=[secret]"}\n'
