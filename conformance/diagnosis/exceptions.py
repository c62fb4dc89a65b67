"""What an exception of a candidate says to someone who knows where such exceptions come from."""

from __future__ import annotations

import re
from collections.abc import Callable

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
        r"(?:not enough|too many) values to unpack \(expected (?:at least )?(\d+)",
        lambda m: f"it unpacks a shape into {m[1]} names, so it runs for {m[1]} axes only",
    ),
    (
        r"view size is not compatible",
        "`view` needs memory in order, and this input's is not; `reshape` copies where it must",
    ),
    (
        r"expected scalar type (\w+) but found (\w+)",
        lambda m: (
            f"a {m[1].lower()} and a {m[2].lower()} tensor meet: "
            "weights and input differ in dtype, and one of them is not cast"
        ),
    ),
    (
        r"expected m1 and m2 to have the same dtype, but got: ([\w ]+) != ([\w ]+)",
        lambda m: (
            f"a product of {m[1].strip()} and {m[2].strip()}: "
            "weights and input differ in dtype, and one of them is not cast"
        ),
    ),
    (
        r"same dtype|dtype.*(?:mismatch|not match)|Found dtype (\w+) but expected",
        "tensors of two dtypes meet, and none of them is cast",
    ),
    (
        r"not implemented for '(\w+)'",
        lambda m: f"an operation is used that torch does not have for {m[1]}",
    ),
    (
        r"same device|(?:cuda|mps).*(?:cpu)|(?:cpu).*(?:cuda|mps)",
        "tensors on two devices meet: a table or a mask is made on another device than the input",
    ),
    (
        r"shape '\[.*\]' is invalid for input of size",
        "it gives the numbers a shape with fixed lengths that this input does not have",
    ),
    (
        r"[Dd]imension out of range \(expected to be in range of .*, but got (-?\d+)\)",
        lambda m: f"axis {m[1]} is written down although this input has fewer axes",
    ),
    (
        r"mat1 and mat2 shapes cannot be multiplied|mat1 dim 1 must match|size mismatch",
        "a matrix product whose inner lengths differ: one factor is transposed, or has other axes",
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
        r"index (-?\d+) is out of bounds|index out of range|out of range in self",
        "it looks up an entry beyond the end of a table",
    ),
    (
        r"'NoneType' object",
        "an argument that may be left out (None) is used as if it were there",
    ),
    (r"einops|[Ee]insum|einx", "the pattern of axes fits one number of axes only"),
    (r"[Ii]nference tensor", "a tensor made in inference mode is kept and used outside of it"),
    (r"KeyError", "a weight is looked up by a name that the dictionary does not have"),
    (r"unexpected keyword|missing \d+ required", "the function takes other arguments than these"),
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
