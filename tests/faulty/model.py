"""Faults of the language model: layers, embedding, norm, head, and wrong attention inside."""

import torch
import torch.nn.functional as F

from ..adapting import lm_by
from ..parts import (
    Attention,
    Block,
    Function,
    Model,
    linear,
    rmsnorm,
    sinusoidal,
    softmax,
)
from .catalogue import CONVENTION, PYTORCH, SPEED, SUBMISSIONS, Entry, registrar
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


fault(
    "layers-sorted-as-text",
    "Sorts layers by name, so that layer 10 comes before layer 2.",
    "Try more than ten layers.",
    source=SUBMISSIONS,
    at=MANY,
)(ordered(lambda n: sorted(range(n), key=str)))

fault("last-layer-skipped", "Runs one layer too few.", "How many layers run?")(
    ordered(lambda n: range(n - 1))
)

fault("first-layer-skipped", "Starts with the second layer.", "Which layers run?")(
    ordered(lambda n: range(1, n))
)

fault("layers-reversed", "Runs the layers from last to first.", "Which layer comes first?")(
    ordered(lambda n: reversed(range(n)))
)

fault(
    "first-layer-repeated",
    "Runs the first layer num_layers times.",
    "Are all the weights used?",
    source=PYTORCH,
)(ordered(lambda n: [0] * n))

fault(
    "last-layer-repeated",
    "Runs the last layer num_layers times, as a loop that overwrites its weights does.",
    "Are all the weights used?",
    source=SUBMISSIONS,
)(ordered(lambda n: [n - 1] * n))

fault("layers-twice", "Runs all layers twice.", "How many layers run?")(
    ordered(lambda n: [*range(n), *range(n)])
)

fault("at-most-two-layers", "Runs at most two layers.", "Is the number of layers used?")(
    ordered(lambda n: range(min(n, 2)))
)

fault(
    "at-most-ten-layers",
    "Reads one digit of the layer's number, so that layer 11 is taken for layer 1.",
    "Try more than ten layers.",
    source=SUBMISSIONS,
    at=MANY,
)(ordered(lambda n: [int(str(i)[0]) for i in range(n)]))

fault(
    "embedding-added-to-every-layer",
    "Adds the embedding again after every layer.",
    "Where does the embedding enter the residual stream?",
)(Model(between=lambda x, start: x + start))

fault(
    "norm-between-layers",
    "Normalises the residual stream between layers.",
    "Follow the residual stream: may a norm stand on it?",
    source=CONVENTION,
)(Model(between=lambda x, start: F.rms_norm(x, x.shape[-1:], None, 1e-5)))

fault(
    "stream-detached-between-layers",
    "Detaches the residual stream between layers.",
    "Ask for the gradient of the first layer's weights.",
    source=PYTORCH,
    level="SHOULD",
    visible="gradient",
    wrt=("weights.layers.0.ffn.w2.weight",),
)(Model(between=lambda x, start: x.detach()))

fault(
    "final-norm-missing",
    "Leaves out the final norm.",
    "What stands between the last block and the head?",
    source=SUBMISSIONS,
)(Model(last=lambda x, g, eps: x))

fault(
    "final-gain-ignored",
    "Does not apply the final norm's gain.",
    "Gains of all ones hide this.",
)(Model(last=lambda x, g, eps: rmsnorm(x, torch.ones_like(g), eps)))

fault(
    "final-layer-norm",
    "Subtracts the mean in the final norm.",
    "Which norm does this model have?",
    source=CONVENTION,
)(Model(last=lambda x, g, eps: rmsnorm(x - x.mean(-1, keepdim=True), g, eps)))

fault(
    "final-norm-twice",
    "Applies the final norm twice.",
    "Gains of all ones hide this.",
)(Model(last=lambda x, g, eps: rmsnorm(rmsnorm(x, g, eps), g, eps)))

fault(
    "final-norm-of-last-layer",
    "Uses the gain of the last layer's second norm for the final norm.",
    "Are all the weights used?",
)(Model(rename=lambda w: w | {"ln_final.weight": w[max(n for n in w if n.endswith("ln2.weight"))]}))

fault(
    "head-before-final-norm",
    "Normalises the logits instead of the head's input.",
    "What stands between the last block and the head?",
)(
    Model(
        last=lambda x, g, eps: x,
        finish=lambda logits: F.rms_norm(logits, logits.shape[-1:], None, 1e-5),
    )
)

fault(
    "tied-head",
    "Uses the token embeddings as the head's weight.",
    "Are all the weights used?",
    source=CONVENTION,
)(Model(head=lambda x, w: linear(x, w["token_embeddings.weight"])))

fault(
    "head-reinterpreted",
    "Views the head's memory in the transposed shape.",
    "Changing a shape and exchanging axes are different things.",
)(Model(head=lambda x, w: linear(x, w["lm_head.weight"].T.reshape(w["lm_head.weight"].shape))))

fault(
    "softmax-on-logits",
    "Answers probabilities.",
    "Who applies the softmax: the model, or the loss?",
    source=SUBMISSIONS,
)(Model(finish=lambda logits: softmax(logits, -1)))

fault(
    "log-softmax-on-logits",
    "Answers log-probabilities.",
    "Who applies the softmax: the model, or the loss?",
    source=SUBMISSIONS,
)(Model(finish=lambda logits: F.log_softmax(logits, -1)))

fault(
    "logits-scaled",
    "Divides the logits by the root of d_model.",
    "Nothing follows the head.",
    source=CONVENTION,
)(Model(head=lambda x, w: linear(x, w["lm_head.weight"]) / x.shape[-1] ** 0.5))

fault(
    "logits-capped",
    "Squashes the logits with a scaled tanh.",
    "Nothing follows the head.",
    source=CONVENTION,
)(Model(finish=lambda logits: 5 * torch.tanh(logits / 5)))

fault(
    "last-position-only",
    "Answers the logits of the last position.",
    "For which positions are predictions wanted?",
    source=SPEED,
    visible="shape",
)(Model(finish=lambda logits: logits[..., -1, :]))

fault(
    "logits-transposed",
    "Answers logits with the vocabulary before the sequence, as a loss wants them.",
    "In which order are the axes specified?",
    source=CONVENTION,
    visible="shape",
)(Model(finish=lambda logits: logits.mT))

fault(
    "logits-flattened",
    "Joins batch and sequence to one axis.",
    "In which order are the axes specified?",
    visible="shape",
)(Model(finish=lambda logits: logits.flatten(0, -2)))

fault(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "Try a batch of one and a single token.",
    visible="shape",
    at={"lead": (1,)},
)(Model(finish=lambda logits: logits.squeeze()))

fault(
    "logits-one-late",
    "Shifts the logits by one position.",
    "Which token is predicted at the first position?",
)(Model(finish=lambda logits: logits.roll(1, -2)))

fault(
    "float32-result",
    "Answers in float32 for weights of lower precision.",
    "What leaves has the dtype of the weights.",
    level="SHOULD",
    visible="dtype",
    at={"dtype": torch.bfloat16},
)(Model(finish=lambda logits: logits.float()))


def embedded(by: Function) -> Model:
    """The model with by(table, ids) for the embedding."""
    return Model(embed=by)


fault(
    "embedding-scaled",
    "Multiplies the embedding by the root of d_model.",
    "That factor is another architecture's.",
    source=CONVENTION,
)(embedded(lambda w, ids: w[ids] * w.shape[1] ** 0.5))

fault(
    "embedding-next-row",
    "Takes the embedding of the token after.",
    "The first token has the id 0.",
)(embedded(lambda w, ids: w[(ids + 1) % len(w)]))

fault(
    "embedding-normalised",
    "Normalises the embedding.",
    "What stands between the embedding and the first block?",
    source=CONVENTION,
)(embedded(lambda w, ids: F.rms_norm(w[ids], w.shape[1:], None, 1e-5)))

fault(
    "positions-added",
    "Adds a sinusoidal encoding to the embedding.",
    "Positions enter by rotation alone.",
    source=CONVENTION,
)(embedded(lambda w, ids: w[ids] + sinusoidal(w.shape[1], torch.arange(ids.shape[-1]))))

fault(
    "embedding-detached",
    "Detaches the embedding, so that the table cannot be trained.",
    "Ask for the gradient of every weight.",
    source=PYTORCH,
    level="SHOULD",
    visible="gradient",
    wrt=("weights.token_embeddings.weight",),
)(embedded(lambda w, ids: w.detach()[ids]))

fault(
    "zero-is-padding",
    "Treats token 0 as padding and gives it a zero embedding.",
    "No id is special here.",
    source=CONVENTION,
    at={"in_indices": torch.tensor([[0, 3, 0, 5, 1], [2, 0, 4, 4, 0]])},
)(embedded(lambda w, ids: w[ids] * (ids != 0)[..., None]))

fault(
    "dropout-active",
    "Applies dropout to the embedding at every call.",
    "Does the same input give the same output twice?",
    source=PYTORCH,
)(embedded(lambda w, ids: F.dropout(w[ids], 0.3)))
