"""The default generator of random numbers, and its state."""

from lamina._C import _set_default_seed, default_generator

__all__ = [
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def manual_seed(seed):
    """Start the default generator at a seed; the same seed gives the same numbers."""
    _set_default_seed(int(seed))
    return default_generator


def seed():
    """Start the default generator at a seed from the system, and return the seed."""
    return default_generator.seed()


def initial_seed():
    """The seed that the default generator was started with."""
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the default generator, a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Go back to a state that get_rng_state gave."""
    default_generator.set_state(new_state)
