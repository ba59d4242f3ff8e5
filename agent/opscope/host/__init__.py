"""Merge the segments of all processes of a host into one snapshot.

Read in this order: snapshot (the model that exporters get), key_tables, totals, tracked_segment
(the contribution of one file), segment_directory (the files of one directory), state (the sums that
outlive the agent), host (all of them). Observed processes run none of this unless they call
`opscope.serve()`.
"""
