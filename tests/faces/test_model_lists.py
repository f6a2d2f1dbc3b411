"""/model, `cru -m` and `cru models` against what a server really has."""

from __future__ import annotations

from tests.kit import HomeDir, Reply, cru, pty, server

from cru.core.base.values.messages import Usage

LISTED = b"""{"data": [
    {"id": "big-1", "context_length": 200000, "name": "The Big One", "pricing": {"prompt": "0.000003", "completion": "0.000015"}},
    {"id": "small-1", "max_model_len": 8192}, {"id": "text-embedding-3"}, {"id": 7}, "none", {"id": "odd", "pricing": {"prompt": "x"}}
]}"""


def test_model_says_what_the_server_lists(home: HomeDir) -> None:
    with server([]) as model:
        model.models = LISTED
        home.configure('model = "big-1"\n', url=model.url)
        shown = cru("/model", home=home).out
        assert "200000 tokens, as openai_compatible lists it" in shown
        assert "$3 in, $15 out for a million tokens (as openai_compatible lists it)" in shown
        assert "3 models at openai_compatible: `/model list [words]`" in shown
        listed = cru("/model list", home=home).out.splitlines()
        assert listed[0] == "openai_compatible:big-1    200,000 tokens  $3 in, $15 out  The Big One"
        assert [line.split()[0] for line in listed] == [
            f"openai_compatible:{name}" for name in ("big-1", "small-1", "odd")
        ]
        assert cru("/model list the big", home=home).out.split() == listed[0].split()
        assert cru("models", "list", "openai_compatible", home=home).out.splitlines() == listed


def test_a_slip_is_refused_and_a_name_that_is_not_listed_is_kept_with_a_warning(home: HomeDir) -> None:
    with server([Reply("ok")]) as model:
        model.models = LISTED
        home.configure(url=model.url)
        slip = cru("-m", "bigg-1", home=home)
        assert slip.code == 5 and "did you mean openai_compatible:big-1?" in slip.err
        kept = cru("/model private-tune", home=home)
        assert kept.code == 0 and "lists no model private-tune; it is kept all the same" in kept.err


def test_a_list_that_does_not_come_refuses_nothing(home: HomeDir) -> None:
    home.configure(url="http://127.0.0.1:9/v1")
    shown = cru("/model", home=home)
    assert (
        shown.code == 0
        and "which models there are is not known: the server at http://127.0.0.1:9/v1 does not answer" in shown.out
    )
    kept = cru("/model big-1", home=home)
    assert kept.code == 0 and "could not be checked" in kept.err
    run = cru("models", "list", "openai_compatible", home=home)
    assert run.code == 1 and "does not answer" in run.err and "Traceback" not in run.err


def test_a_window_that_the_server_says_is_kept_and_cost_says_how_full_it_is(home: HomeDir) -> None:
    usage = Usage(input=50_000, output=10)
    with server([Reply("ok", usage=usage)]) as model:
        model.models = LISTED
        home.configure(url=model.url)
        assert "with its window of 200000 tokens" in cru("/model big-1", home=home).out
        assert (
            home.context() / "local.toml"
        ).read_text() == 'model = "big-1"\n\n[models.big-1]\ncontext_window = 200000\n'
        assert "context window: 200000 tokens\n" in cru("/model", home=home).out
        assert cru("hello", home=home).code == 0
        shown = cru("/cost", home=home).out
        assert "the window is " in shown and "of 200,000 tokens" in shown
        percent = int(shown.partition("the window is ")[2].split()[0])
        assert 24 <= percent <= 27


def test_all_is_for_every_context_and_says_what_comes_before_it(home: HomeDir) -> None:
    with server([]) as model:
        model.models = LISTED
        home.configure(url=model.url)
        assert cru("/model small-1", home=home).code == 0
        run = cru("/model big-1 --all", home=home, env={"CRU_MODEL": "odd"})
        assert "kept in" in run.out and "; what the environment says comes before it" in run.out
        assert 'model = "big-1"' in (home.cru / "config.toml").read_text()
        assert 'model = "small-1"' not in (home.context() / "local.toml").read_text()
        assert cru("/model big-1 small-1", home=home).code == 2


def test_tab_completes_models_and_modes(home: HomeDir) -> None:
    with server([]) as model:
        model.models = LISTED
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.send("/model sma")
            terminal.key("tab")
            terminal.expect_screen("/model openai_compatible:small-1")
            terminal.send("\r")
            terminal.expect("openai_compatible:small-1 answers from now on in default")
            terminal.send("/mode pl")
            terminal.key("tab")
            terminal.expect_screen("/mode plan")
            terminal.key("c-c")
            assert terminal.eof() == 0


METADATA = """[models.big-1]
context_window = 200000
"""


def test_the_metadata_of_a_model_is_printed_as_models_toml_takes_it(home: HomeDir) -> None:
    with server([]) as model:
        model.models = LISTED
        home.configure(url=model.url)
        assert cru("--model-metadata", "openai_compatible:big-1", home=home).out == METADATA
        full = cru("--model-metadata-full", "big-1", home=home)
        about = "# provider: openai_compatible\n# pricing: $3 in, $15 out for a million tokens (as openai_compatible lists it)\n"
        assert full.out == about + METADATA
        unknown = cru("--model-metadata", "bigg-1", home=home)
        assert unknown.code == 5 and "did you mean openai_compatible:big-1?" in unknown.err
        wanted = '{"command": {"model_metadata": {"model": "big-1", "full": true}}, "context": "default"}'
        assert "# pricing: $3 in" in cru("--json-config", home=home, input=wanted).out
