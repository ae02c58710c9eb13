"""Engines for quantized tensors: none."""

engine = "none"
supported_engines = ["none"]
