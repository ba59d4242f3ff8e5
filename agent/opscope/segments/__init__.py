"""Read one segment: from a file that another process writes to a validated object.

Read in this order: layout (the format as NumPy sees it), segment_file, directories (find the
files), dictionary, shape, variance, exemplar_entries, segment (one file in, one object out),
liveness (whether the process still runs). opscope/host adds up the segments of a host.
"""
