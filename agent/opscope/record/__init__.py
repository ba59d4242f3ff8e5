"""The record-function layer from Python: ranges, callbacks, debug info, tasks, the recorder.

Thin: what it does stands in ``native/record``. Nothing here knows of any framework.
"""
