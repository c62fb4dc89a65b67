"""Distributions of the next token on numbers that can be worked out by hand."""

import pytest
import torch
from torch import Tensor

from reference_impl import TransformerLM, next_token_probabilities, sample_next_token

QUARTERS = torch.tensor([0.125, 0.5, 0.125, 0.25]).log()


def after(last: Tensor, **options: float | None) -> list[float]:
    """Probabilities for a sequence of three positions whose last has the logits `last`."""
    torch.manual_seed(0)
    logits = torch.randn(3, last.shape[-1])
    logits[-1] = last
    result: list[float] = next_token_probabilities(logits, **options).tolist()  # type: ignore[arg-type]  # float | None covers both options
    return result


@pytest.mark.parametrize(
    ("top_p", "expected"),
    [
        (None, [0.125, 0.5, 0.125, 0.25]),
        (1.0, [0.125, 0.5, 0.125, 0.25]),
        (0.9, [0.125, 0.5, 0.125, 0.25]),
        (0.8, [1 / 7, 4 / 7, 0, 2 / 7]),  # the first of two equals completes the set
        (0.7, [0, 2 / 3, 0, 1 / 3]),
        (0.4, [0, 1, 0, 0]),
        (1e-9, [0, 1, 0, 0]),
    ],
)
def test_nucleus_is_the_smallest_set_that_reaches_p(
    top_p: float | None, expected: list[float]
) -> None:
    assert after(QUARTERS, top_p=top_p) == pytest.approx(expected, abs=1e-7)


def test_temperature_raises_probabilities_to_a_power() -> None:
    squares = torch.tensor([1.0, 16, 1, 4]) / 22
    assert after(QUARTERS, temperature=0.5) == pytest.approx(squares.tolist())
    cold = after(QUARTERS, temperature=1e-30)
    assert cold == [0, 1, 0, 0]


def test_temperature_comes_before_the_nucleus() -> None:
    # squared and renormalised the largest has 16/22 = 0.73 of the mass
    assert after(QUARTERS, temperature=0.5, top_p=0.7) == [0, 1, 0, 0]


def test_temperature_zero_is_greedy_and_takes_the_first_of_equals() -> None:
    assert after(torch.tensor([1.0, 3, 3, 2]), temperature=0) == [0, 1, 0, 0]
    assert after(torch.tensor([1.0, 3, 3, 2]), temperature=0.0, top_p=0.9) == [0, 1, 0, 0]


@pytest.mark.parametrize("leading", [(), (2,), (2, 3), (0,)])
def test_any_leading_axes_and_only_the_last_position(leading: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    logits = torch.randn(*leading, 5, 11)
    before = logits.clone()
    result = next_token_probabilities(logits, 0.7, 0.8)
    assert result.shape == (*leading, 11)
    torch.testing.assert_close(result.sum(-1), torch.ones(leading))
    assert torch.equal(result, next_token_probabilities(logits[..., -1:, :], 0.7, 0.8))
    assert torch.equal(logits, before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_dtype_of_the_logits_is_kept(dtype: torch.dtype) -> None:
    for temperature in (0.0, 1.0):
        assert next_token_probabilities(QUARTERS[None].to(dtype), temperature, 0.9).dtype == dtype


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ValueError, match="temperature must not be negative, but is -1"):
        after(QUARTERS, temperature=-1.0)
    for top_p in (0.0, 1.1):
        with pytest.raises(ValueError, match=r"top_p is a probability in \(0, 1\]"):
            after(QUARTERS, top_p=top_p)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 3), (2, 9)])
def test_one_step_of_generation(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = TransformerLM(7, 5, 8, 1, 2, 16, 50.0)
    prompt = torch.randint(7, shape)
    drawn = sample_next_token(model, prompt, temperature=0)
    assert drawn.shape == (*shape[:-1], 1)
    greedy = model(prompt[..., -5:])[..., -1:, :].argmax(-1)  # the context holds five tokens
    assert torch.equal(drawn, greedy)


def test_draws_follow_the_distribution_and_the_generator() -> None:
    torch.manual_seed(0)
    model = TransformerLM(5, 4, 8, 1, 2, 16, 50.0)
    prompt = torch.randint(5, (4,)).expand(20000, 4)
    first, again = (
        sample_next_token(model, prompt, 1.0, 0.8, torch.Generator().manual_seed(1))
        for _ in range(2)
    )
    assert torch.equal(first, again)
    shares = torch.bincount(first.flatten(), minlength=5) / 20000
    expected = next_token_probabilities(model(prompt[:1]), 1.0, 0.8)[0]
    torch.testing.assert_close(shares, expected, rtol=0, atol=0.02)
    assert torch.equal(shares > 0, expected > 0)
