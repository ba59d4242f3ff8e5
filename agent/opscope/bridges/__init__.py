"""Bridges make another framework's operators appear as ranges, one module for each framework.

A bridge has ``attach()``, ``detach()``, ``status()`` and ``seen()``. It never imports its
framework: it takes what the program has imported already.
"""
