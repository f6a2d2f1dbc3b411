from __future__ import annotations

import pytest

from cru.core.base.config.secret import holds_secret, mask_url, secrets_in_url


@pytest.mark.parametrize(
    ("url", "shown", "secrets"),
    [
        ("https://host:8/v1", "https://host:8/v1", []),
        ("http://u:PW@host/v1?key=Q", "http://***@host/v1?key=***", ["u:PW", "u", "PW", "Q"]),
        ("http://us%40er:p%2Fw@h", "http://***@h", ["us%40er:p%2Fw", "us@er:p/w", "us%40er", "us@er", "p%2Fw", "p/w"]),
        ("http://a@b@host/", "http://***@host/", ["a@b"]),
        ("http://host/x@y?a=1&b&=2", "http://host/x@y?a=***&***&=***", ["1", "b", "2"]),
        ("http://host?k=v#f", "http://host?k=***", ["v"]),
        ("u:p@host/v1", "***@host/v1", ["u:p", "u", "p"]),
        ("", "", []),
        ("not a url", "not a url", []),
    ],
)
def test_what_is_secret_in_an_address_is_masked(url: str, shown: str, secrets: list[str]) -> None:
    assert mask_url(url) == shown
    assert secrets_in_url(url) == secrets


@pytest.mark.parametrize(
    ("setting", "secret"),
    [
        ("api_key=x", True),
        ("plugins.mail.password=x", True),
        ('plugins.mail."auth-token"=x', True),
        ("plugins.mail={user='a', token = 'b'}", True),
        ("base_url=http://u:p@h/v1", True),
        ("base_url='http://h/v1?key=1'", True),
        ("base_url=http://h/v1", False),
        ("api.max_tokens=9", False),
        ("model=monkey", False),
        ("plugins.keyboard=1", False),
    ],
)
def test_a_setting_that_holds_a_secret_is_known(setting: str, secret: bool) -> None:
    assert holds_secret(setting) is secret
