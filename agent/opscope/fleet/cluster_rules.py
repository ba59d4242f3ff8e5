"""The rules of one cluster: each selector limited to its label `cluster`.

For the package's own rules alone, whose metrics have known names: this does not parse PromQL.
"""

from __future__ import annotations

import re

# Metrics of agents, results of rules, and Prometheus's own; not the text of a quoted matcher, nor a
# label or the name of a record.
_SELECTOR = re.compile(r"""("[^"]*")|\b(opscope[_:][\w:]+|up)\b(\{)?""")
_EXPR = re.compile(r"^( +)expr:(.*(?:\n(?:\1 +.*|[ \t]*))*)", re.MULTILINE)
_GROUP = re.compile(r"^(  - name: )(\S+)$", re.MULTILINE)


def of_cluster(rules: str, cluster: str) -> str:
    """The text of a file of rules with `cluster="..."` in each selector of each expression, and
    groups named after the cluster."""
    matcher = f'cluster="{cluster}"'

    def selector(found: re.Match[str]) -> str:
        if found[1]:
            return found[1]
        return f"{found[2]}{{{matcher}, " if found[3] else f"{found[2]}{{{matcher}}}"

    def expr(found: re.Match[str]) -> str:
        return f"{found[1]}expr:{_SELECTOR.sub(selector, found[2])}"

    return _GROUP.sub(rf"\g<1>\g<2>-{cluster}", _EXPR.sub(expr, rules))
