"""What a tool call may do: rules, modes, the gate, grants, trust. `gate.Gate.judge` decides; `asker.Asker` asks a person."""
