"""CUDA: not built. Settings are kept, so that programs which make them run."""

from contextlib import contextmanager


def is_built():
    """False."""
    return False


class _Products:
    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False
    fp32_precision = "none"


class _PlanCache:
    size = 0
    max_size = 0

    def clear(self):
        """Nothing is cached."""

    def __getitem__(self, device):
        return self


matmul = _Products()
cufft_plan_cache = _PlanCache()
_enabled = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def _pair(kind):
    def enable(enabled):
        _enabled[kind] = bool(enabled)

    def is_enabled():
        return _enabled[kind]

    enable.__doc__ = f"Whether attention may use the {kind} kernel of CUDA; kept, and used by none."
    is_enabled.__doc__ = "What was set."
    return enable, is_enabled


enable_flash_sdp, flash_sdp_enabled = _pair("flash")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _pair("mem_efficient")
enable_math_sdp, math_sdp_enabled = _pair("math")
enable_cudnn_sdp, cudnn_sdp_enabled = _pair("cudnn")


def is_flash_attention_available():
    """False."""
    return False


def can_use_flash_attention(params, debug=False):
    """False."""
    return False


def can_use_efficient_attention(params, debug=False):
    """False."""
    return False


def preferred_linalg_library(backend=None):
    """Kept for programs that set it; there is none."""
    return backend


def preferred_blas_library(backend=None):
    """Kept for programs that set it; there is none."""
    return backend


@contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """A block with other kernels of attention allowed on CUDA."""
    before = dict(_enabled)
    _enabled.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield {}
    finally:
        _enabled.update(before)


__all__ = [
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "cudnn_sdp_enabled",
    "cufft_plan_cache",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_blas_library",
    "preferred_linalg_library",
    "sdp_kernel",
]
