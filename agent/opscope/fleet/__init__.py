"""Questions about a whole fleet, put to whatever stores its metrics and answers PromQL.

store.py asks; promql.py has the expressions; rankings.py and versions.py what is made of the
answers. Needs no recording rules. What one host's agent knows is in opscope/agent.
"""
