"""Recurrent encoder-decoders in PyTorch, of the sizes and settings of kbert's.

They run `nn.GRU` where all inputs are known, and `nn.GRUCell` where a step needs the
attention before it; keys of the attention, readouts and logits are computed for all steps at once.
"""

import math
from typing import Any

import torch
from torch import nn


class Sequences(nn.Module):
    """Embeddings that both languages and the output share."""

    def __init__(self, size: dict[str, Any]) -> None:
        super().__init__()
        self.width = size.get("embedding_dim") or size["hidden_dim"]
        self.table = nn.Embedding(size["vocabulary_size"], self.width)
        nn.init.normal_(self.table.weight, std=self.width**-0.5)
        self.bias = nn.Parameter(torch.zeros(size["vocabulary_size"]))
        self.dropout = nn.Dropout(size["dropout"])

    def embedded(self, ids: Any) -> Any:
        return self.dropout(self.table(ids))

    def logits(self, states: Any) -> Any:
        return nn.functional.linear(self.dropout(states), self.table.weight, self.bias)


class Maxout(nn.Module):
    """The larger of each two neighbours."""

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, 2 * units)

    def forward(self, inputs: Any) -> Any:
        return self.linear(inputs).unflatten(-1, (-1, 2)).amax(-1)


def encoded(layer: Any, embedded: Any, lengths: Any) -> tuple[Any, Any]:
    """States of a `nn.GRU` on padded sequences, and the last of each direction."""
    packed = nn.utils.rnn.pack_padded_sequence(
        embedded, lengths, batch_first=True, enforce_sorted=False
    )
    states, last = layer(packed)
    return nn.utils.rnn.pad_packed_sequence(states, batch_first=True)[0], last


class Rnn(Sequences):
    """One vector for the source, read at each step."""

    def __init__(self, size: dict[str, Any]) -> None:
        super().__init__(size)
        hidden = size["hidden_dim"]
        self.encoder = nn.GRU(self.width, hidden, batch_first=True)
        self.decoder = nn.GRU(self.width + hidden, hidden, batch_first=True)
        self.context, self.initial = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.readout = Maxout(2 * hidden + self.width, self.width)

    def forward(self, source: Any, padding: Any, target: Any) -> Any:
        _, last = encoded(self.encoder, self.embedded(source), (~padding).sum(1))
        context = torch.tanh(self.context(last[0]))
        embedded = self.embedded(target)
        spread = context[:, None].expand(-1, target.shape[1], -1)
        initial = torch.tanh(self.initial(context))[None]
        states, _ = self.decoder(torch.cat([embedded, spread], -1), initial)
        return self.logits(self.readout(torch.cat([states, embedded, spread], -1)))


class Bahdanau(Sequences):
    """Additive attention from the state before each step."""

    def __init__(self, size: dict[str, Any]) -> None:
        super().__init__(size)
        hidden = size["hidden_dim"]
        one = size.get("encoder_dim") or hidden
        inner = size.get("attention_dim") or hidden
        self.encoder = nn.GRU(self.width, one, batch_first=True, bidirectional=True)
        self.initial, self.key = nn.Linear(one, hidden), nn.Linear(2 * one, inner)
        self.query = nn.Linear(hidden, inner, bias=False)
        self.score = nn.Linear(inner, 1, bias=False)
        self.cell = nn.GRUCell(self.width + 2 * one, hidden)
        self.readout = Maxout(hidden + self.width + 2 * one, self.width)

    def forward(self, source: Any, padding: Any, target: Any) -> Any:
        values, last = encoded(self.encoder, self.embedded(source), (~padding).sum(1))
        keys, embedded = self.key(values), self.embedded(target)
        state, before, contexts = torch.tanh(self.initial(last[1])), [], []
        for step in embedded.unbind(1):
            scores = self.score(torch.tanh(self.query(state)[:, None] + keys))[..., 0]
            weights = scores.masked_fill(padding, -math.inf).softmax(-1)
            context = torch.bmm(weights[:, None], values)[:, 0]
            before.append(state)
            contexts.append(context)
            state = self.cell(torch.cat([step, context], -1), state)
        parts = [torch.stack(before, 1), embedded, torch.stack(contexts, 1)]
        return self.logits(self.readout(torch.cat(parts, -1)))
