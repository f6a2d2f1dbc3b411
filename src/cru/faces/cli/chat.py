def command(parsed, words): raise SystemExit
