"""Functions that cannot be scripted; refused.txt has the error of each."""

# Annotations and style are those of the mistakes.
# mypy: ignore-errors
# pyright: reportOptionalMemberAccess=false, reportUndefinedVariable=false
# pyright: reportOperatorIssue=false, reportAssignmentType=false, reportCallIssue=false
# pyright: reportPossiblyUnboundVariable=false
# pyright: reportArgumentType=false
# ruff: noqa
# fmt: off

import functools
import math

from opscope import tensor as ot
from opscope.tensor import Tensor, nn


class MyError(Exception):
    """No exception of Python's own."""


def helper(x, n):
    return x * n


def deco(function):
    @functools.wraps(function)
    def inner(*arguments):
        return function(*arguments)

    return inner


class Assigns(nn.Module):
    def forward(self, x):
        self.last = x
        return x


assigns = Assigns()


def while_else(x):
    while x.sum() > 0:
        x = x - 1
    else:
        x = x + 1
    return x


def trying(x):
    try:
        return x
    except ValueError:
        return -x


def one_branch(x, n: int):
    if n > 2:
        y = x
    return y


def in_loop(n: int):
    for i in range(n):
        last = i
    return last


def two_types(x, n: int):
    if n > 2:
        y = 1
    else:
        y = 2.0
    return y


def loop_types(n: int):
    y = 1
    for i in range(n):
        y = y / 2
    return y


def results(n: int):
    if n > 2:
        return 1
    return "a"


def fact(n: int) -> int:
    if n < 2:
        return 1
    return n * fact(n - 1)


def even(n: int) -> bool:
    return n == 0 or odd(n - 1)


def odd(n: int) -> bool:
    return n != 0 and even(n - 1)


def a_dict(x):
    d = {"a": x}
    return d["a"]


def lam(x):
    f = lambda y: y + 1
    return f(x)


def maybe(x, y: Tensor | None = None):
    return x + y


def maybe2(x, y: Tensor | None = None):
    return y.sum()


def unann(x, n):
    return helper(x, 3)


def glob(x):
    global counter
    counter = 1
    return x


def withs(x):
    with ot.no_grad():
        return x * 2


def nonlocal_name(x):
    return x * undefined_thing


def attr(x):
    return x.nothing()


def numpy_(x):
    return x.numpy()


def bad_arg(x):
    return x.sum("a")


def bad_kw(x):
    return x.sum(axis=0)


def unknown_math(x: float):
    return math.sin(x)


def gen(x):
    yield x


def set_attr(x):
    x.grad = x
    return x


@deco
def decorated(x):
    return x


def star(x, *xs: Tensor):
    return x


def kw(x, **more):
    return x


def annotation(x: dict[str, int]):
    return x


def walrus(x):
    if (y := x.sum()) > 0:
        return y
    return x


def mixed_list(x):
    return [x, 1]


def changed(xs: list[int]):
    for x in xs:
        xs.append(x)
    return xs


def big(x):
    return x + 1180591620717411303424


def compares(x, n: int):
    return n < "a"


def classes(x):
    return nn.Linear(1, 2)(x)


def fformat(x: float):
    return f"{x:.2f}"


def custom(x):
    raise MyError("a")


def truthy(x: Tensor | None):
    if x:
        return 1
    return 2


def unpack3(x):
    a, b = (x, x, x)
    return a


def slices(xs: list[int]):
    xs[1:] = [2]
    return xs


def dels(xs: list[int]):
    del xs[0]
    return xs


def inner_def(x):
    def f(y): return y
    return f(x)


def modindex(x):
    return (1, 2.0)[int(x)]



def two_fors(xs: list[int]):
    return [x + y for x in xs for y in xs]


def unknown_length(xs: list[int]):
    return max(*xs)


def too_many(x):
    return helper(x, x, x)


def no_such(x):
    return helper(x, m=x)


def strings(text: str):
    return text.upper()


def is_number(n: int, m: int):
    return n is m


def index_text(x):
    return x["a"]


def apart(x, rows):
    return x[rows, :, rows]


def int_and_float_max(a: int, b: float):
    return max(a, b)


def constants_change(x):
    LISTED.append(1)
    return x


def backward(x):
    x.sum().backward()
    return x


def print_end(x):
    print(x, end="")
    return x


LISTED = [1, 2]


def default_int(x, n=3):
    return x * n


def default_none(x, y: Tensor = None):
    return x


def inner_error(x, n: int):
    return x + unknown_name


def called(x):
    return called_too(x)


def called_too(x):
    return inner_error(x, 3)


def matched(x, n: int):
    match n:
        case 1: return x
    return -x


def starred(x):
    first, *rest = x.shape
    return x


def scaled(x, n: Tensor):
    return x * n


def maybe3(x, y: Tensor | None = None):
    return scaled(x * 2, n=y)


def pops(x, xs: list[int]):
    return xs.pop(0, 1)


def minus_text(text: str):
    return -text


def in_number(n: int):
    return n in 3.0
