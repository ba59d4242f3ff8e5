"""Timelines: what the tracer in C wrote (native/TRACE.md), read, nested, summed up and drawn.

``reader`` checks the bytes, ``nesting`` finds what ran within what, ``chrome`` writes the JSON that
viewers open, ``averages`` sums up by operator, ``profiler`` is ``opscope.profile``. Nothing here
imports more than the standard library and opscope's own C module: it runs in observed processes.
"""
