#!/bin/sh
# `make demo`: a real agent turn on a real model inside the program. After the set-up nothing leaves this machine.
# BIN: the folder of the environment's programs.
set -eu
cru="$BIN/cru"
folder=$(cd "$(dirname "$0")/.." && pwd)
own="${CRU_HOME:-$HOME/.cru}"   # the weights go there, so that a plain `cru` finds them; everything else of the demo stays in a home of its own
export CRU_HOME="${DEMO_HOME:-$folder/.venv/demo-home}"
export CRU_MODEL=local:smollm2
unset OPENROUTER_API_KEY OPENAI_API_KEY ANTHROPIC_API_KEY CRU_BASE_URL || true
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
cd "$folder"
mkdir -p "$CRU_HOME"
[ -e "$CRU_HOME/config.toml" ] || printf '[api]\nmax_tokens = 60\ntemperature = 0.2\n' > "$CRU_HOME/config.toml"

say "Demo 1/4: installing what runs a model inside cru (34 MB, once)"
quiet=-q; [ ! -t 1 ] || quiet=
# shellcheck disable=SC2086
"$BIN/python" -c 'import xllamacpp' 2>/dev/null || "$BIN/python" -m pip install $quiet --disable-pip-version-check -c constraints.txt -e '.[local]'

say "Demo 2/4: fetching the model, SmolLM2 with 135M parameters (98 MB, once). It shows that everything works and is no match for a real one."
CRU_HOME="$own" "$cru" models pull smollm2
[ -e "$CRU_HOME/models" ] || ln -s "$own/models" "$CRU_HOME/models"

say 'Demo 3/4: a turn. $ head -c 600 docs/turn.md | cru -C demo -a "In one sentence: what is a leg?"'
head -c 600 docs/turn.md | "$cru" -C demo -a "In one sentence: what is a leg?"

say 'Demo 4/4: a turn with a tool. The model chooses a path for ls from a list (docs/demo_ls.py)'
"$BIN/python" docs/demo_ls.py

say '$ cru -C demo-ls trace      (what happened in that turn)'
"$cru" -C demo-ls trace

say 'Demo done. Next: . .venv/bin/activate && cru "hi" uses this model; docs/getting-started.md says how to use a real one.'
