"""The reading side: from segment files to per-host totals, and the server that shows them.

In reading order: layout (the format as numpy sees it), segment_file, dictionary, segment (one file
in, one object out), snapshot (the model an exporter gets), totals, host (all segments of a host),
exporter, server, serve. Nothing here runs in an observed process unless it calls opscope.serve().
"""
