"""Train steps of PyTorch's `nn.Transformer`, or of another model, with one table of embeddings."""

import contextlib
import math
from typing import Any

from side_by_side.turns import Turns, cores

turns = Turns()

import numpy as np
import torch
from peers.torch_convs2s import ConvS2S
from peers.torch_recurrent_models import Bahdanau, Rnn
from torch import nn

MODELS = {"rnn": Rnn, "bahdanau": Bahdanau, "convs2s": ConvS2S}


class Translator(nn.Module):
    """`nn.Transformer` between a shared table, as in Vaswani et al. 2017."""

    def __init__(self, size: dict[str, Any]) -> None:
        super().__init__()
        width = size["hidden_dim"]
        self.table = nn.Embedding(size["vocabulary_size"], width)
        nn.init.normal_(self.table.weight, std=width**-0.5)
        self.scale, self.dropout = math.sqrt(width), nn.Dropout(size["dropout"])
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        angles = torch.arange(512)[:, None] * rates
        waves = torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(512, width)
        self.register_buffer("waves", waves)
        self.layers = nn.Transformer(
            width,
            size["num_heads"],
            size["num_encoder_layers"],
            size["num_decoder_layers"],
            size["intermediate_dim"],
            size["dropout"],
            batch_first=True,
        )
        # Dropout stands where the paper has it, as in kbert: behind each sublayer, not on the
        # probabilities of attention nor inside the feed-forward networks.
        for layer in (*self.layers.encoder.layers, *self.layers.decoder.layers):
            layer.self_attn.dropout = layer.dropout.p = 0.0
        for layer in self.layers.decoder.layers:
            layer.multihead_attn.dropout = 0.0
        # The paper's stacks of post-norm layers have no norm behind them.
        self.layers.encoder.norm = self.layers.decoder.norm = None

    def forward(self, source: Any, padding: Any, target: Any) -> Any:
        sides = [
            self.dropout(self.table(ids) * self.scale + self.waves[: ids.shape[1]])
            for ids in (source, target)
        ]
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        states = self.layers(
            *sides,
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return states @ self.table.weight.T


def main() -> None:
    """Answers with milliseconds of training on all batches once."""
    torch.manual_seed(1)
    torch.set_num_threads(cores())
    settings = turns.settings
    model = MODELS.get(settings["architecture"], Translator)(settings["size"]).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, betas=(0.9, 0.98), eps=1e-9)
    loss_of = nn.CrossEntropyLoss(ignore_index=-1, label_smoothing=0.1)
    batches: dict[str, dict[str, Any]] = {}
    for name, array in np.load(settings["data"]).items():
        number, _, column = name.partition("/")
        batches.setdefault(number, {})[column] = torch.from_numpy(array)
    low = settings["precision"] == "bfloat16"
    precision: Any = torch.autocast("cpu", torch.bfloat16) if low else contextlib.nullcontext()

    def train() -> float:
        total = 0.0
        for batch in batches.values():
            with precision:
                source, padding = batch["source_token_ids"], ~batch["source_padding_mask"]
                logits = model(source, padding, batch["target_token_ids"])
                targets = batch["targets"].long().flatten()
                loss = loss_of(logits.float().flatten(0, 1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total / len(batches)

    turns.ready("torch", loss=round(train(), 3))
    turns.serve({"train": train})


if __name__ == "__main__":
    main()
