"""What an exception of a candidate says to someone who knows where such exceptions come from."""

from __future__ import annotations

import re
from collections.abc import Callable

UNCAST = "weights and input differ in dtype, and one of them is not cast"
INNER_LENGTHS = (
    "a matrix product whose inner lengths differ: one factor is transposed, or has other axes"
)


def _dtype(name: str) -> str:
    """The name of a dtype as Python has it: "c10::BFloat16" is "bfloat16", "Half" is "float16"."""
    plain = name.strip().removeprefix("c10::").lower()
    return {"half": "float16", "float": "float32", "double": "float64"}.get(plain, plain)


_KINDS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (
        r"modified by an inplace operation|leaf Variable that requires grad",
        "an operation in place overwrites what the backward pass needs",
    ),
    (r"backward through the graph a second time", "the graph serves one backward pass only"),
    (
        r"does not require grad and does not have a grad_fn",
        "the graph is cut: nothing in the result depends on the input by a derivative",
    ),
    (
        r"numpy\(\) on Tensor that requires grad",
        "it leaves torch for NumPy, which knows no derivatives",
    ),
    (
        r"not enough values to unpack \(expected at least (\d+)",
        lambda m: f"it unpacks a shape that must have {m[1]} axes at least",
    ),
    (
        r"(?:not enough|too many) values to unpack \(expected (\d+)",
        lambda m: f"it unpacks a shape into {m[1]} names, so it runs for {m[1]} axes only",
    ),
    (
        r"reshape tensor of 0 elements into shape \[.*-1",
        "-1 in a shape cannot be worked out where another axis has length 0",
    ),
    (
        r"view size is not compatible",
        "`view` needs memory in order, and this input's is not; `reshape` copies where it must",
    ),
    (
        r"expected scalar type (\w+) but found (\w+)",
        lambda m: f"a {_dtype(m[1])} and a {_dtype(m[2])} tensor meet: {UNCAST}",
    ),
    (
        r"expected m1 and m2 to have the same dtype, but got: ([\w: ]+) != ([\w: ]+)",
        lambda m: f"a product of {_dtype(m[1])} and {_dtype(m[2])}: {UNCAST}",
    ),
    (
        r"same dtype|dtypes match|mixed dtype|expected dtype \w+ for|Found dtype \w+ but expected",
        "tensors of two dtypes meet, and none of them is cast",
    ),
    (
        r"boolean (?:tensor|mask)|Boolean-type",
        "a mask is used that is not of dtype bool",
    ),
    (
        r"tensors used as indices must be|to have one of the following scalar types: Long",
        "something is looked up by numbers that are not integers",
    ),
    (
        r"more than one value is ambiguous|cannot be converted to Scalar|only one element tensors",
        "a tensor of several numbers is used as if it were one",
    ),
    (
        r"not implemented for '(\w+)'",
        lambda m: f"an operation is used that torch does not have for {m[1]}",
    ),
    (
        r"same device|expected device|(?:cuda|mps).*(?:cpu)|(?:cpu).*(?:cuda|mps)",
        "tensors on two devices meet: a table or a mask is made on another device than the input",
    ),
    (
        r"shape '\[.*\]' is invalid for input of size|don't multiply up to the size",
        "it gives the numbers a shape with fixed lengths that this input does not have",
    ),
    (
        r"[Dd]imension out of range \(expected to be in range of .*, but got (-?\d+)\)",
        lambda m: f"axis {m[1]} is written down although this input has fewer axes",
    ),
    (
        r"number of dimensions in the tensor input|only supported on matrices",
        "the number of axes is written down, and this input has another",
    ),
    (
        r"copying a param with shape",
        "a weight is loaded into a module with other lengths: are two of them exchanged?",
    ),
    (
        r"mat1 and mat2 shapes cannot be multiplied|size mismatch|inconsistent tensor size"
        r"|dimensions of batch2 tensor|subscript \w has size",
        INNER_LENGTHS,
    ),
    (
        r"Sizes of tensors must match except|stack expects each tensor to be equal size",
        "tensors are joined whose other lengths differ",
    ),
    (
        r"[Ss]ize of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)",
        lambda m: f"lengths {m[1]} and {m[2]} meet: an axis is missing, or meets the wrong one",
    ),
    (
        r"output with shape .* doesn't match the broadcast shape",
        "an operation in place cannot grow its target",
    ),
    (
        r"index (-?\d+) is out of bounds|index out of range|exceeds dimension size",
        "it looks up an entry beyond the end of a table",
    ),
    (
        r"NoneType",
        "an argument that may be left out (None) is used as if it were there",
    ),
    (
        r"[Ee]inops.*Wrong shape|number of subscripts in the equation",
        "the pattern of axes fits one number of axes only",
    ),
    (r"[Ee]inops|[Ee]insum|einx", "the pattern of axes does not fit this input"),
    (r"[Ii]nference tensor", "a tensor made in inference mode is kept and used outside of it"),
    (
        r"KeyError|key\(s\) in state_dict",
        "a weight is looked up by a name that the dictionary does not have",
    ),
    (
        r"unexpected keyword|missing \d+ required|positional arguments? but",
        "the function takes other arguments than these",
    ),
    (r"RecursionError", "it calls itself without end"),
    (r"broadcast|expand", "shapes meet that cannot be broadcast against each other"),
)


def reading(message: str) -> str:
    """The likely cause of an exception, from its type and text; empty when it is none we know."""
    for expression, words in _KINDS:
        found = re.search(expression, message)
        if found:
            return words if isinstance(words, str) else words(found)
    return ""
