"""Decorators of functions that say how an operator is exported; nothing is."""

__all__ = ["parse_args", "quantized_args"]


def parse_args(*arg_descriptors):
    """Gives back the function that it decorates."""
    return lambda fn: fn


def quantized_args(*arg_q_descriptors, scale=None, zero_point=None, quantize_output=True):
    """Gives back the function that it decorates."""
    return lambda fn: fn
