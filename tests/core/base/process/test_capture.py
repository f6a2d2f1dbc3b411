"""What is kept of an output."""

from __future__ import annotations

from cru.core.base.process.capture import ByteCapture, TextCapture


def test_the_middle_of_too_much_output_is_left_out_and_counted() -> None:
    capture = TextCapture(limit=200_000)
    for letter in b"abcdefgh":
        capture.feed(bytes([letter]) * 65_536)
    text = capture.close()
    assert text.startswith("a" * 65_536 + "b")
    assert text.endswith("h" * 65_536)
    cut = f"\n[... {capture.left_out:,} characters left out ...]\n"
    assert len(text) - len(cut) + capture.left_out == 8 * 65_536
    assert cut in text


def test_a_text_may_end_the_child_at_its_limit() -> None:
    capture = TextCapture(limit=1000, ends_at_limit=True)
    assert not capture.feed(b"a")
    assert [capture.feed(b"x" * 65_536) for _ in range(2)][-1]
    assert capture.is_cut


def test_the_first_bytes_are_kept_and_the_others_counted() -> None:
    capture = ByteCapture(kept=4, most=6)
    assert [capture.feed(piece) for piece in (b"abc", b"def", b"g")] == [False, False, True]
    assert (capture.content(), capture.close(), capture.size) == (b"abcd", "abcd", 7)
    assert capture.is_cut and capture.is_too_much
    assert not ByteCapture(4, 6).is_cut
