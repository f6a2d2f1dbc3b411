# Two commands: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
STAMP   = $(VENV)/.installed
# pip shows its progress to whoever watches.
PIP     = $(BIN)/python -m pip install $$([ -t 1 ] || echo -q) --disable-pip-version-check -c constraints.txt

SOAK_SECONDS ?= 60
SOAK_SEED ?= $(shell date +%s)
SOAK_SEED := $(SOAK_SEED)

.PHONY: setup demo test test-all soak differential lint bench docs pins audit clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@echo "Set-up 1/2: creating the Python environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "Set-up 2/2: installing cru and its development tools; this takes a minute or two"
	@$(PIP) -e '.[dev]'
	@touch $(STAMP)
	@echo "Set-up done: . $(VENV)/bin/activate puts cru on your PATH"

# abspath of make would take a path with a space for two.
demo: $(STAMP)
	@BIN="$$(cd "$(BIN)" && pwd)" sh docs/demo.sh

# Every promise at least once, in three minutes on two processors: without slow tests, and with samples of large tables.
test: $(STAMP)
	ulimit -Sn 1024; "$(BIN)/python" -m pytest -n 4 --dist worksteal --short

# All tests: the whole tables, foreign programs, attacks, hostile guests, hundreds of kills.
test-all: $(STAMP)
	ulimit -Sn 1024; "$(BIN)/python" -m pytest -n 4 --dist worksteal -m 'not soak'

# Fuzzing, so many seconds for each reader, then every hostile guest on every road (half an hour on two processors).
soak: $(STAMP)
	$(PIP) -e '.[fuzz]'
	@echo "make soak SOAK_SECONDS=$(SOAK_SECONDS) SOAK_SEED=$(SOAK_SEED)"
	$(BIN)/python -m tests.fuzz --seconds $(SOAK_SECONDS) --seed $(SOAK_SEED); status=$$?; \
	ulimit -Sn 1024; SOAK_SEED=$(SOAK_SEED) $(BIN)/python -m pytest -n 2 -m soak && exit $$status

differential: $(STAMP)
	$(BIN)/python -m tests.kit.differential $(CASES)

# All checks run, also behind one that fails.
lint: $(STAMP)
	@failed=; check() { echo "$$*"; "$$@" || failed="$$failed\n  $$*"; }; \
	check "$(BIN)/ruff" check .; \
	check "$(BIN)/ruff" format --check .; \
	check "$(BIN)/python" -m tests.kit.limits; \
	check "$(BIN)/python" -m tests.kit.program_facts --check; \
	check "$(BIN)/python" -m tests.kit.docs --check; \
	check "$(BIN)/mypy"; \
	check "$(BIN)/lint-imports" --no-cache; \
	case "$$failed" in *"ruff format"*) echo "\`$(BIN)/ruff format .\` writes the files as the check wants them" >&2 ;; esac; \
	[ -z "$$failed" ] || { printf "failed:$$failed\n" >&2; exit 1; }

bench: $(STAMP)
	sh bench/run.sh

docs: $(STAMP)
	$(BIN)/python -m tests.kit.program_facts --write
	$(BIN)/python -m tests.kit.docs --write

# requirements.txt anew: what a plain install brings, with hashes.
pins: $(STAMP)
	$(PIP) -e '.[pins]'
	$(BIN)/python -m tests.kit.pins

# What of it is known to be vulnerable; its own environment, so that nothing of pip-audit is among what the tests see.
audit: $(STAMP)
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install -q --disable-pip-version-check pip-audit
	$(BIN)/python -m tests.kit.audit $(VENV)-audit/bin/pip-audit

clean:
	rm -rf $(VENV) $(VENV)-audit build dist src/*.egg-info
