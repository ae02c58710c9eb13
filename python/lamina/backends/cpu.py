"""The CPU."""


def get_cpu_capability():
    """The instruction set that kernels use: "DEFAULT", "AVX2" or "AVX512"."""
    from lamina.cpu import get_capabilities

    found = get_capabilities()
    return "AVX512" if found["avx512_f"] else "AVX2" if found["avx2"] else "DEFAULT"


__all__ = ["get_cpu_capability"]
