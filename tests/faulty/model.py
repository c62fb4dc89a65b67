"""Faults of the language model: layers, embedding, norm, head, and wrong attention inside."""

import torch
import torch.nn.functional as F

from ..adapting import lm_by
from ..parts import Attention, Block, Function, Model, linear, rmsnorm, sinusoidal, softmax
from .catalogue import Entry, registrar
from .pieces import ATTENTION, register
from .rotations import ROTATIONS

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "transformer_lm", "lm", lm_by)
RIGHT = Model()
MANY = {"layers": 12, "heads": 1, "d_ff": 4}


def attending(pieces: Attention) -> Model:
    """The model with other pieces of attention in every block."""
    return Model(block=Block(attention=pieces))


register(
    fault, [p for p in [*ATTENTION, *ROTATIONS] if p.visible == "value"], attending, "attention-"
)


def ordered(by: Function) -> Model:
    """The model that runs the layers by(num_layers) in this order."""
    return Model(order=by)


fault("layers-sorted-as-text", at=MANY)(ordered(lambda n: sorted(range(n), key=str)))

fault("last-layer-skipped")(ordered(lambda n: range(n - 1)))

fault("first-layer-skipped")(ordered(lambda n: range(1, n)))

fault("layers-reversed")(ordered(lambda n: reversed(range(n))))

fault("first-layer-repeated")(ordered(lambda n: [0] * n))

fault("last-layer-repeated")(ordered(lambda n: [n - 1] * n))

fault("layers-twice")(ordered(lambda n: [*range(n), *range(n)]))

fault("at-most-two-layers")(ordered(lambda n: range(min(n, 2))))

fault("at-most-ten-layers", at=MANY)(ordered(lambda n: [int(str(i)[0]) for i in range(n)]))

fault("embedding-added-to-every-layer")(Model(between=lambda x, start: x + start))

fault("norm-between-layers")(
    Model(between=lambda x, start: F.rms_norm(x, x.shape[-1:], None, 1e-5))
)

fault("stream-detached-between-layers", wrt=("weights.layers.0.ffn.w2.weight",))(
    Model(between=lambda x, start: x.detach())
)

fault("final-norm-missing")(Model(last=lambda x, g, eps: x))

fault("final-gain-ignored")(Model(last=lambda x, g, eps: rmsnorm(x, torch.ones_like(g), eps)))

fault("final-layer-norm")(
    Model(last=lambda x, g, eps: rmsnorm(x - x.mean(-1, keepdim=True), g, eps))
)

fault("final-norm-twice")(Model(last=lambda x, g, eps: rmsnorm(rmsnorm(x, g, eps), g, eps)))

fault("final-norm-of-last-layer")(
    Model(
        rename=lambda w: w | {"ln_final.weight": w[max(n for n in w if n.endswith("ln2.weight"))]}
    )
)

fault("head-before-final-norm")(
    Model(
        last=lambda x, g, eps: x,
        finish=lambda logits: F.rms_norm(logits, logits.shape[-1:], None, 1e-5),
    )
)

fault("tied-head")(Model(head=lambda x, w: linear(x, w["token_embeddings.weight"])))

fault("head-reinterpreted")(
    Model(head=lambda x, w: linear(x, w["lm_head.weight"].T.reshape(w["lm_head.weight"].shape)))
)

fault("softmax-on-logits")(Model(finish=lambda logits: softmax(logits, -1)))

fault("log-softmax-on-logits")(Model(finish=lambda logits: F.log_softmax(logits, -1)))

fault("logits-scaled")(Model(head=lambda x, w: linear(x, w["lm_head.weight"]) / x.shape[-1] ** 0.5))

fault("logits-capped")(Model(finish=lambda logits: 5 * torch.tanh(logits / 5)))

fault("last-position-only")(Model(finish=lambda logits: logits[..., -1, :]))

fault("logits-transposed")(Model(finish=lambda logits: logits.mT))

fault("logits-flattened")(Model(finish=lambda logits: logits.flatten(0, -2)))

fault("drops-size-one-axes", at={"lead": (1,)})(Model(finish=lambda logits: logits.squeeze()))

fault("logits-one-late")(Model(finish=lambda logits: logits.roll(1, -2)))

fault("float32-result", at={"dtype": torch.bfloat16})(Model(finish=lambda logits: logits.float()))


def embedded(by: Function) -> Model:
    """The model with by(table, ids) for the embedding."""
    return Model(embed=by)


fault("embedding-scaled")(embedded(lambda w, ids: w[ids] * w.shape[1] ** 0.5))

fault("embedding-next-row")(embedded(lambda w, ids: w[(ids + 1) % len(w)]))

fault("embedding-normalised")(embedded(lambda w, ids: F.rms_norm(w[ids], w.shape[1:], None, 1e-5)))

fault("positions-added")(
    embedded(lambda w, ids: w[ids] + sinusoidal(w.shape[1], torch.arange(ids.shape[-1])))
)

fault("embedding-detached", wrt=("weights.token_embeddings.weight",))(
    embedded(lambda w, ids: w.detach()[ids])
)

fault("zero-is-padding", at={"in_indices": torch.tensor([[0, 3, 0, 5, 1], [2, 0, 4, 4, 0]])})(
    embedded(lambda w, ids: w[ids] * (ids != 0)[..., None])
)

fault("dropout-active")(embedded(lambda w, ids: F.dropout(w[ids], 0.3)))
