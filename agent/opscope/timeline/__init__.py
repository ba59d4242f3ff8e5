"""Timelines: read the tracer's output (native/TRACE.md), nest it, add it up, and write it.

`reader` validates the bytes, `nesting` finds the nesting of ranges, `chrome` writes the JSON that
viewers open, `averages` adds up by operator, `profiler` is `opscope.profile`. These modules import
only the standard library and opscope's own C module, since they run in observed processes.
"""
