"""The reading side: from segment files to per-host totals, and the server that shows them.

In reading order: layout (the format as numpy sees it), segment_file, dictionary, exemplars, segment
(one file in, one object out), snapshot (the model an exporter gets), tables, totals, tracked (what
one file adds), place (the files of a directory), state (what outlives the agent), host (all of
them), exporter, push, server, http_server, access, passes (the agent's loop), serve. Nothing here
runs in an observed process unless it calls opscope.serve().
"""
