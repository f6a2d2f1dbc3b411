# No first line, no execute bit: installers are told to stay offline.
input=$(cat)
command=$(jq -r .tool_input.command <<<"$input")
[[ $command == "pip install "* ]] || exit 0
jq -nc --arg command "${command/pip install/echo pip install --no-index}" \
  '{decision: "allow", updated_input: {command: $command}, context: "Packages come from ./wheels only."}'
