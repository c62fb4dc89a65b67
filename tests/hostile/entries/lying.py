"""Answers that pretend to be right."""

from __future__ import annotations

from ..catalogue import Entry, Holds

WRONG = Holds("failed", "the result is wrong")

ENTRIES = [
    Entry(
        "equal-to-everything",
        "returns an object that is equal to anything",
        Holds("failed", "instead of a tensor"),
        code="""\
class Equal:
    shape, dtype, ndim = (), None, 0

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __bool__(self):
        return True

    __hash__ = None
    __array__ = lambda self, *a, **k: self


def attack(right, *given):
    return Equal()
""",
    ),
    Entry(
        "claims-to-be-a-tensor",
        "returns an object whose __class__ says Tensor",
        Holds("failed", "instead of a tensor"),
        code="""\
import torch


class Pretender:
    @property
    def __class__(self):
        return torch.Tensor

    def __getattr__(self, name):
        return getattr(torch.zeros(()), name)


def attack(right, *given):
    return Pretender()
""",
    ),
    Entry(
        "tensor-with-a-lying-shape",
        "returns a tensor subclass whose shape, dtype and size lie",
        Holds("failed"),
        code="""\
import torch


class Liar(torch.Tensor):
    asked = None

    @property
    def shape(self):
        return self.asked.shape

    @property
    def dtype(self):
        return torch.float64

    def numel(self):
        return 0

    def detach(self):
        return self.asked


def attack(right, *given):
    lie = torch.zeros(1).as_subclass(Liar)
    lie.asked = right(*given)
    return lie
""",
    ),
    Entry(
        "tensor-with-lying-functions",
        "returns a tensor subclass whose __torch_function__ agrees with every comparison",
        Holds("failed", "instead of a plain one"),
        code="""\
import torch


class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True


def attack(right, *given):
    return torch.zeros_like(right(*given)).as_subclass(Liar)
""",
    ),
    Entry(
        "lazy-tensor",
        "returns a tensor that computes only when it is looked at",
        Holds("failed", "instead of a plain one"),
        code="""\
import torch


class Lazy(torch.Tensor):
    @staticmethod
    def __new__(cls, right, given):
        answer = right(*given)
        made = torch.Tensor._make_wrapper_subclass(cls, answer.shape, dtype=answer.dtype)
        made.work = (right, given)
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        known = [a.work[0](*a.work[1]) if isinstance(a, Lazy) else a for a in args]
        return function(*known, **(kwargs or {}))


def attack(right, *given):
    return Lazy(right, given)
""",
    ),
    Entry(
        "nan-everywhere",
        "returns NaN, which a careless comparison takes for equal",
        Holds("failed"),
        code="""\
import torch


def attack(right, *given):
    return torch.full_like(right(*given), float("nan"))
""",
    ),
    Entry(
        "infinity-everywhere",
        "returns infinity, which makes a relative error NaN",
        Holds("failed"),
        code="""\
import torch


def attack(right, *given):
    return torch.full_like(right(*given), float("inf"))
""",
    ),
    Entry(
        "a-list",
        "returns the right numbers as a list",
        Holds("failed", "returned a list"),
        code="def attack(right, *given):\n    return [right(*given)]\n",
    ),
    Entry(
        "a-numpy-array",
        "returns the right numbers as a NumPy array",
        Holds(("failed", "raised")),
        code="def attack(right, *given):\n    return right(*given).detach().numpy()\n",
    ),
    Entry(
        "a-sparse-tensor",
        "returns the right numbers as a sparse tensor",
        Holds("failed", "a sparse or nested tensor"),
        code="def attack(right, *given):\n    return right(*given).to_sparse()\n",
    ),
    Entry(
        "a-complex-tensor",
        "returns the right numbers as a complex tensor",
        Holds("failed", "a complex tensor"),
        code="""\
import torch


def attack(right, *given):
    return right(*given).to(torch.complex64)
""",
    ),
    Entry(
        "a-tensor-without-values",
        "returns a tensor on the device meta",
        Holds("failed", "a tensor without values"),
        code="def attack(right, *given):\n    return right(*given).to('meta')\n",
    ),
    Entry(
        "a-tensor-of-terabytes",
        "returns one number repeated to a shape of 2^42 entries",
        Holds("failed", "more than can be sent"),
        code="""\
import torch


def attack(right, *given):
    return torch.zeros(1).expand(2**42)
""",
    ),
    Entry(
        "a-tensor-of-4-megabytes",
        "returns a tensor that is just small enough to be sent",
        Holds("failed"),
        code="import torch\n\n\ndef attack(right, *given):\n    return torch.zeros(1 << 20)\n",
        alone=True,
    ),
    Entry(
        "a-tensor-of-200-megabytes",
        "returns a tensor that is larger than any answer",
        Holds("failed", "more than can be sent"),
        code="import torch\n\n\ndef attack(right, *given):\n    return torch.zeros(50 << 20)\n",
        alone=True,
    ),
    Entry(
        "a-tensor-of-a-million-axes",
        "returns a tensor of 60 axes",
        Holds("failed"),
        code="""\
import torch


def attack(right, *given):
    return right(*given).reshape(-1)[:1].reshape((1,) * 60)
""",
    ),
    Entry(
        "overwrites-the-input",
        "writes the right answer over its input and returns that",
        Holds(("failed", "raised")),
        code="""\
def attack(right, *given):
    answer = right(*given)
    for tensor in given:
        if getattr(tensor, "shape", None) == answer.shape and tensor.dtype == answer.dtype:
            tensor.data.copy_(answer)
            return tensor
    return answer
""",
    ),
    Entry(
        "zeroes-the-input",
        "sets all its inputs to zero so that a reference that reads them later agrees with zeros",
        WRONG,
        code="""\
import torch


def attack(right, *given):
    answer = torch.zeros_like(right(*given))
    for tensor in given:
        if isinstance(tensor, torch.Tensor):
            tensor.data.zero_()
    return answer
""",
    ),
    Entry(
        "keeps-answers-by-identity",
        "returns the answer of an earlier call whose input had the same address",
        Holds(("failed", "crashed", "raised")),
        code="""\
known = {}


def attack(right, *given):
    return known.setdefault(tuple(map(id, given))[-1] % 64, right(*given))
""",
    ),
    Entry(
        "keeps-answers-by-shape",
        "computes once for each shape and returns that answer again",
        Holds(("failed", "raised")),
        code="""\
known = {}


def attack(right, *given):
    answer = right(*given)
    return known.setdefault((answer.shape, answer.dtype), answer)
""",
    ),
    Entry(
        "keeps-one-buffer",
        "writes all answers of a shape into the same memory",
        Holds(("failed", "raised")),
        code="""\
known = {}


def attack(right, *given):
    answer = right(*given)
    kept = known.setdefault((answer.shape, answer.dtype), answer.detach().clone())
    kept.copy_(answer.detach())
    return kept
""",
    ),
    Entry(
        "right-at-first",
        "answers rightly three times and with zeros from then on",
        Holds("failed"),
        code="""\
import torch

calls = 0


def attack(right, *given):
    global calls
    calls += 1
    answer = right(*given)
    return answer if calls <= 3 else answer * 0
""",
    ),
    Entry(
        "changes-the-answer-later",
        "answers rightly and lets a thread overwrite the answer after a second",
        Holds(("passed", "failed")),
        code="""\
import threading


def attack(right, *given):
    answer = right(*given)
    timer = threading.Timer(1.0, lambda: answer.data.zero_())
    timer.daemon = True
    timer.start()
    return answer
""",
        alone=True,
    ),
    Entry(
        "looks-for-the-expected-value",
        "returns any tensor or array of the right shape that gc or a stack frame knows, else zeros",
        WRONG,
        code="""\
import gc
import sys

import numpy
import torch


def attack(right, *given):
    answer = right(*given)
    shape, own = tuple(answer.shape), {id(t) for t in given} | {id(answer)}
    frame, seen = sys._getframe(1), []
    while frame is not None:
        seen += frame.f_locals.values()
        frame = frame.f_back
    for thing in [*seen, *gc.get_objects()]:
        if type(thing) in (torch.Tensor, numpy.ndarray) and id(thing) not in own:
            if tuple(thing.shape) == shape and not (thing != thing).any():
                found = torch.as_tensor(thing).to(answer.dtype)
                if not any(torch.equal(found, t) for t in given if isinstance(t, torch.Tensor)):
                    return found.clone()
    return torch.zeros_like(answer)
""",
    ),
    Entry(
        "detaches",
        "returns the right numbers without a graph",
        Holds("failed", "no gradient reaches"),
        code="def attack(right, *given):\n    return right(*given).detach()\n",
    ),
    Entry(
        "backward-lies",
        "returns the right numbers with a gradient of ones",
        Holds("failed", "the gradient with respect to"),
        code="""\
import torch


class Lie(torch.autograd.Function):
    @staticmethod
    def forward(ctx, answer):
        return answer.clone()

    @staticmethod
    def backward(ctx, gradient):
        return torch.ones_like(gradient)


def attack(right, *given):
    return Lie.apply(right(*given))
""",
    ),
]
