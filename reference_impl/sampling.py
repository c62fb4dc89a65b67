"""From logits to the next token."""

import torch
from torch import Tensor

from .activations import softmax
from .model import TransformerLM
from .precision import at_least_float32


def next_token_probabilities(
    logits: Tensor, temperature: float = 1.0, top_p: float | None = None
) -> Tensor:
    """Distribution of the token that follows a sequence, from the logits of its last position.

    softmax(logits / temperature); a low temperature sharpens the distribution, and 0 is the limit:
    all on the most probable token (greedy), the first of them on a tie.

    Args:
        logits: (..., T, vocab).
        temperature: ValueError when negative.
        top_p: keep the nucleus only (see `nucleus`); ValueError outside (0, 1].

    Returns:
        (..., vocab), in the dtype of the logits.
    """
    if temperature < 0:
        raise ValueError(f"temperature must not be negative, but is {temperature}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is a probability in (0, 1], not {top_p}")
    last = at_least_float32(logits[..., -1, :])  # (..., vocab)
    if temperature == 0:
        greedy = last.argmax(dim=-1, keepdim=True)
        return torch.zeros_like(last).scatter(-1, greedy, 1).to(logits.dtype)
    # Softmax does not see the shift; without it a tiny temperature would make infinities.
    shifted = last - last.amax(dim=-1, keepdim=True).detach()
    probabilities = softmax(shifted / temperature, dim=-1)
    if top_p is not None and top_p < 1:
        probabilities = nucleus(probabilities, top_p)
    return probabilities.to(logits.dtype)


def nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """Keep the smallest set of most probable tokens whose mass reaches top_p, and renormalise.

    Holtzman et al. 2019, eq. 2-3. The token that carries the mass across top_p belongs to the set,
    so it is never empty. Among equally probable tokens the first ones are kept.
    """
    ranked, order = probabilities.sort(dim=-1, descending=True, stable=True)  # (..., vocab)
    too_little = ranked.cumsum(dim=-1) < top_p  # the first n tokens do not reach it yet ...
    count = too_little.sum(dim=-1, keepdim=True) + 1  # ... so it takes one more than those
    rank = order.argsort(dim=-1)  # place of each token in the ranking
    kept = torch.where(rank < count, probabilities, 0)
    return kept / kept.sum(dim=-1, keepdim=True)


@torch.no_grad()
def sample_next_token(
    model: TransformerLM,
    token_ids: Tensor,
    temperature: float = 1.0,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """One step of generation: draw the token that follows each sequence.

    A prompt longer than the context loses its oldest tokens, not its newest.

    Args:
        token_ids: integers (..., T), T >= 1.

    Returns:
        ids (..., 1), ready to be appended: `torch.cat((token_ids, next_ids), dim=-1)`.
    """
    window = token_ids[..., -model.context_length :]  # (..., T)
    probabilities = next_token_probabilities(model(window), temperature, top_p)  # (..., vocab)
    rows = at_least_float32(probabilities).reshape(-1, probabilities.shape[-1])
    drawn = torch.multinomial(rows, num_samples=1, generator=generator)
    return drawn.reshape(*probabilities.shape[:-1], 1)  # (..., 1)
