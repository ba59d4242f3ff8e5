"""The record-function layer from Python: ranges, callbacks, debug info, tasks, the recorder.

It is thin: `native/record` has the implementation. Nothing here depends on a framework.
"""
