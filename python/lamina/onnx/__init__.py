"""What packages need of `torch.onnx` when they are imported. There is no export."""

__all__ = ["is_in_onnx_export", "register_custom_op_symbolic"]


def is_in_onnx_export():
    """False."""
    return False


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Accepted; there is no export that would ask for it."""


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Accepted."""
