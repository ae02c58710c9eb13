"""Versions: of PyTorch's API, and of what a build may contain."""

__version__ = "2.13.0+lamina"
debug = False
cuda = None
git_version = "unknown"
hip = None
rocm = None
xpu = None

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
