"""Reports on a snapshot for people: tables, breakdowns, recordings and their comparison.

`certainty` decides whether an estimate is precise enough to be shown.
"""
