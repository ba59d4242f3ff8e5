"""Query a whole fleet through a store of its metrics that answers PromQL.

store.py sends queries; promql.py has the expressions; rankings.py and versions.py evaluate the
answers. It needs no recording rules. opscope/host covers a single host.
"""
