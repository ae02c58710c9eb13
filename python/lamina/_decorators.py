"""Grad modes as decorators."""

import functools
import inspect


def _drive(context, generator):
    """A generator with every step inside a fresh `context`."""
    answer, error = None, None
    while True:
        try:
            with context.clone():
                item = generator.send(answer) if error is None else generator.throw(error)
        except StopIteration as stop:
            return stop.value
        answer, error = None, None
        try:
            answer = yield item
        except GeneratorExit:
            with context.clone():
                generator.close()
            raise
        except BaseException as thrown:
            error = thrown


class _Steps:
    """A coroutine with every step inside a fresh context."""

    def __init__(self, context, coroutine):
        self._context, self._coroutine = context, coroutine

    def __await__(self):
        return (yield from _drive(self._context, self._coroutine))


def decorate(context, function):
    """`function` with every call, or every step of a generator or coroutine, in a fresh `context`."""
    if isinstance(function, type):
        function.__init__ = decorate(context, function.__init__)
        return function
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def steps(*args, **kwargs):
            return (yield from _drive(context, function(*args, **kwargs)))

        return steps
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args, **kwargs):
            return await _Steps(context, function(*args, **kwargs))

        return awaited
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def items(*args, **kwargs):
            generator = function(*args, **kwargs)
            try:
                answer = None
                while True:
                    try:
                        item = await _Steps(context, generator.asend(answer))
                    except StopAsyncIteration:
                        return
                    answer = yield item
            finally:
                await _Steps(context, generator.aclose())

        return items

    @functools.wraps(function)
    def inside(*args, **kwargs):
        with context.clone():
            return function(*args, **kwargs)

    return inside
