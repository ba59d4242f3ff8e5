"""A server of compiled models over the Open Inference Protocol: `opscope serve-model`.

[README.md](README.md) says what it does and in which order to read it. Needs `opscope[serving]`.
"""
