"""The running host agent: its loop, its exporters, its HTTP pages and their access rules.

Read in this order: exporter (the contract), export_progress, series_filter, push, pages,
http_server, connections, bounded_io, access, fair_queue, live (the page for people), loop, serve.
"""
