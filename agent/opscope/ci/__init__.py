"""Operators in continuous integration: two commands compared, and budgets in pytest.

`runs.py` runs commands in turns, `verdicts.py` compares what they took, `instructions.py` counts
instructions; cli/bench_compare.py prints. `budgets.py` and `baseline.py` judge the operators of a
block, for the fixture `opscope_profile` of the package pytest_opscope. README.md says how to use
them.
"""
