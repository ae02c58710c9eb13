"""Grad modes as decorators."""

import functools
import inspect


def decorate(context, function):
    """`function` with every call, or every step of a generator, inside a fresh `context`."""
    if isinstance(function, type):
        function.__init__ = decorate(context, function.__init__)
        return function
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def steps(*args, **kwargs):
            generator = function(*args, **kwargs)
            answer, error = None, None
            while True:
                try:
                    with context.clone():
                        if error is None:
                            item = generator.send(answer)
                        else:
                            item = generator.throw(error)
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

        return steps

    @functools.wraps(function)
    def inside(*args, **kwargs):
        with context.clone():
            return function(*args, **kwargs)

    return inside
