"""Modules that learn the shapes of their parameters from the first input."""

from __future__ import annotations

from lamina.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Adds to a module that its parameters may be without shape until the first call.

    The module defines `initialize_parameters`, which gets the call's arguments and gives its parameters their shapes.
    Afterwards the object is one of the class `cls_to_become`.
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in self._parameters.items():
            if value is not None:
                waiting = is_lazy(value) or keep_vars
                destination[prefix + name] = value if waiting else value.detach()
        for name, value in self._buffers.items():
            if value is not None and name not in self._non_persistent_buffers_set:
                waiting = is_lazy(value) or keep_vars
                destination[prefix + name] = value if waiting else value.detach()

    def _lazy_load_hook(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Shapes from a state that has them: the tensors are made before values are copied."""
        import lamina

        for name, value in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if given is None or value is None or not is_lazy(value) or is_lazy(given):
                continue
            with lamina.no_grad():
                value.materialize(given.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Give the parameters their shapes; `args` are those of the call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self):
        """Whether a parameter or buffer has no shape yet."""
        return any(is_lazy(v) for v in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"module {self._get_name()} has not been fully initialized: "
                "initialize_parameters left a parameter without a shape"
            )
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook
        del module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "data parallel: modules with uninitialized parameters cannot be copied to devices; "
            "run the module once first"
        )
