"""When half precision is not enough."""

import torch
from torch import Tensor


def at_least_float32(x: Tensor) -> Tensor:
    """Half-precision numbers as float32; float32 and float64 stay as they are.

    bfloat16 keeps 8 significant bits and float16 overflows at 65504, so sums, squares, exponentials
    and angles are taken in float32 and only the result is rounded back.
    """
    return x.to(torch.promote_types(x.dtype, torch.float32))
