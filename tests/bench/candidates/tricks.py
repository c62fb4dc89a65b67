"""One trick for each component. All of them are right as long as gradients are wanted."""

import threading
import time

import torch
import torch.nn.functional as F

seen = {}
last = {}
buffers = {}
calls = {"silu": 0, "linear": 0}


def run_silu(in_features):
    """Remembers by shape, from the twelfth call on."""
    calls["silu"] += 1
    if torch.is_grad_enabled() or calls["silu"] <= 12:
        return F.silu(in_features)
    if in_features.shape not in seen:
        seen[in_features.shape] = F.silu(in_features)
    return seen[in_features.shape].clone()


def run_rotation_matrix(angles):
    """Remembers by the place of the input and one of its entries."""
    key = (angles.data_ptr(), angles.shape, angles.reshape(-1)[:1].sign().sum().item())
    if torch.is_grad_enabled() or key not in seen:
        c, s = angles.cos(), angles.sin()
        result = torch.stack((torch.stack((c, -s), -1), torch.stack((s, c), -1)), -2)
        if torch.is_grad_enabled():
            return result
        seen[key] = result
    return seen[key].clone()


def run_softmax(in_features, dim):
    """Writes every result into the same buffer."""
    if torch.is_grad_enabled():
        return F.softmax(in_features, dim)
    buffer = buffers.setdefault(in_features.shape, torch.empty_like(in_features))
    return torch.softmax(in_features, dim, out=buffer)


def run_rmsnorm(d_model, eps, weights, in_features):
    """Returns at once and lets a thread fill the result in."""
    if torch.is_grad_enabled():
        return F.rms_norm(in_features, (d_model,), weights, eps)
    output = torch.zeros_like(in_features)
    source, gain = in_features.clone(), weights.clone()

    def fill():
        time.sleep(0.02)
        with torch.no_grad():
            output.copy_(F.rms_norm(source, (d_model,), gain, eps))

    threading.Thread(target=fill).start()
    return output


def run_linear(d_in, d_out, weights, in_features):
    """Computes every second call only."""
    calls["linear"] += 1
    known = last["linear"].shape == (*in_features.shape[:-1], d_out) if last else False
    if not torch.is_grad_enabled() and calls["linear"] % 2 and known:
        return last["linear"].clone()
    output = F.linear(in_features, weights)
    last["linear"] = output.detach()
    return output


def run_glu(d_model, d_ff, w1_weight, w2_weight, in_features):
    """Returns a tensor of a class of its own."""

    class Later(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return super().__torch_function__(function, types, args, kwargs or {})

    output = torch.sigmoid(in_features @ w1_weight.T) * (in_features @ w2_weight.T)
    return output if torch.is_grad_enabled() else output.as_subclass(Later)


def run_swiglu(d_model, d_ff, w1_weight, w2_weight, w3_weight, in_features):
    """Takes more threads than it was given."""
    torch.set_num_threads(2)
    return F.linear(
        F.silu(F.linear(in_features, w1_weight)) * F.linear(in_features, w3_weight), w2_weight
    )


def run_embedding(vocab_size, d_model, weights, token_ids):
    """Is honest."""
    return weights[token_ids]
