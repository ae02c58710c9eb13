"""What the module of a backend that this build lacks has: true answers, and errors on request."""


def functions(name: str) -> dict:
    """The functions of ``lamina.NAME`` by name."""

    def is_available():
        """False."""
        return False

    def device_count():
        """0."""
        return 0

    def is_initialized():
        """False."""
        return False

    def empty_cache():
        """Does nothing."""

    def manual_seed(seed):
        """Does nothing."""

    def manual_seed_all(seed):
        """Does nothing."""

    def synchronize(device=None):
        """Raises RuntimeError: this build lacks the backend."""
        raise RuntimeError(f"{name}.synchronize: Lamina was built without {name}")

    def current_device():
        """Raises RuntimeError: this build lacks the backend."""
        raise RuntimeError(f"{name}.current_device: Lamina was built without {name}")

    made = {k: v for k, v in locals().items() if callable(v)}
    for function in made.values():
        function.__module__, function.__qualname__ = f"lamina.{name}", function.__name__
    return made
