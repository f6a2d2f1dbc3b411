"""What hooks see and do in other programs, as tables (tests/data/differential/*.json), and what plays them: to cru in the tests, and to the
programs themselves with `make differential`.

A table: {"program", "version", "dialect", "cases": [CASE, …]}. `cases.py` has the fields of a case and of what is expected; `~/record`
(`world.py`) keeps the standard input and the environment of the hook that calls it. A difference with its reason goes into docs/hooks.md.
"""
