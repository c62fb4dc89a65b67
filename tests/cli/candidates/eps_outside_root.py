"""Wrong: eps is added to the root and not under it; only tiny rows show it."""


def run_rmsnorm(d_model, eps, weights, in_features):
    x = in_features.float()
    root = x.pow(2).mean(-1, keepdim=True).sqrt() + eps
    return (x / root * weights).to(in_features.dtype)
