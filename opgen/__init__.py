"""Writes Lamina's generated code from the op list in ``ops/``.

Stages: ``load`` (YAML with line numbers) -> ``schema`` (grammar) -> ``model`` (validated, frozen) -> ``emit`` (one module
per output). A wrong paragraph ends the build with file, line and reason.
"""
