"""Libraries and devices that a build may have, and what they can do here."""

from lamina.backends import (
    cpu,
    cuda,
    cudnn,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    quantized,
)

fp32_precision = "none"

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
]
