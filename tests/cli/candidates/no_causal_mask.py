"""Wrong: every token attends to every other one, later ones included."""


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    *lead, length, _ = in_features.shape
    q, k, v = (
        (in_features @ w.T).reshape(*lead, length, num_heads, -1).transpose(-3, -2)
        for w in (q_proj_weight, k_proj_weight, v_proj_weight)
    )
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    mixed = scores.softmax(-1) @ v
    return mixed.transpose(-3, -2).reshape(*lead, length, -1) @ o_proj_weight.T
