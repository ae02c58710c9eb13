"""A name of older programs."""


def worker_init_fn(worker_id):
    """Does nothing: workers need no preparation for data pipes."""
