"""How far in a redirect may lead, and names that lead further in than they look."""

from __future__ import annotations

import pytest

from cru.core.base.net import BadUrl
from cru.core.base.net.redirects import InwardLeave, within_origin
from cru.core.base.net.transport import Reach

PUBLIC, PRIVATE, HERE = "http://8.8.8.8/", "http://192.168.1.7/", "http://127.0.0.1:3000/"


@pytest.mark.parametrize(
    ("url", "target", "is_followed"),
    [
        (PUBLIC, "https://example.com/", True), (PUBLIC, PRIVATE, False), (PUBLIC, HERE, False), (PUBLIC, "http://169.254.169.254/", False),
        (PUBLIC, "http://localhost/", False), (PUBLIC, "http://a.localhost/", False), (PUBLIC, "http://[::1]/", False),
        (PUBLIC, "http://0x7f.1/", False), (PUBLIC, "http://[::ffff:10.0.0.1]/", False), (PUBLIC, "http://0.0.0.0/", False),
        ("https://example.com/", "https://10.0.0.1/", False), ("http://intranet/", "http://10.0.0.1/", False),
        ("http://intranet/", "http://sso.intranet/", True), (PRIVATE, "http://10.0.0.1/", True), (PRIVATE, HERE, False),
        (PRIVATE, "http://[fd00::1]/", True), (PRIVATE, "http://169.254.169.254/", False), (PRIVATE, "http://198.18.0.1/", False),
        (HERE, PRIVATE, True), (HERE, "http://localhost:4000/", True), (HERE, "http://[::1]:4000/", True), (HERE, PUBLIC, True),
        (HERE, "http://169.254.169.254/", False), (HERE, "http://224.0.0.1/", False), (HERE, "http://127.0.0.1:4000/", True),
        ("http://169.254.169.254/a", "http://169.254.169.254/b", True),
    ],
)  # fmt: skip
def test_a_redirect_leads_no_further_in(url: str, target: str, is_followed: bool) -> None:
    try:
        InwardLeave(lambda url: False)(url, target)
        followed = True
    except BadUrl as error:
        followed = False
        assert "leads to" in error.message and "allow = " in error.hint
    assert followed is is_followed
    InwardLeave(lambda url: True)(url, target)  # a rule opens it


@pytest.mark.parametrize(
    ("address", "is_reached"), [("8.8.8.8", True), ("10.0.0.1", False), ("127.0.0.1", False), ("fe80::1", False)]
)
def test_a_name_that_a_server_chose_leads_to_public_addresses(address: str, is_reached: bool) -> None:
    leave = InwardLeave(lambda url: "intranet" in url)
    reach = leave("https://example.com/", "https://other.test/")
    assert isinstance(reach, Reach) and reach.allow_address is not None
    try:
        reach.allow_address("https://other.test/", address)
        reached = True
    except BadUrl as error:
        reached = False
        assert address in error.message
    assert reached is is_reached
    reach.allow_address("https://example.com/", address)  # the plugin itself has named it
    reach.allow_address("https://sso.intranet/", address)  # a rule has


def test_a_list_of_models_is_asked_for_at_one_server_only() -> None:
    within_origin("https://a.test/v1", "https://a.test/v1/")
    within_origin("https://a.test/v1", "https://a.test:443/v1/")
    for target in ("https://b.test/v1", "https://a.test:8443/v1", "http://a.test/v1"):
        with pytest.raises(BadUrl, match="is not asked"):
            within_origin("https://a.test/v1", target)
