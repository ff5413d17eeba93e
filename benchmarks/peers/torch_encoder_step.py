"""The forward pass and train step of transformers' BertModel on random ids."""

from typing import Any

from side_by_side.turns import Turns, cores

turns = Turns()

import torch
from transformers import BertConfig, BertModel


def main() -> None:
    """Answers with milliseconds of "forward" and "train"."""
    layers, hidden, heads, intermediate, batch, length = turns.settings["size"]
    autocast, whole = turns.settings["autocast"], turns.settings["whole_bfloat16"]
    torch.set_num_threads(cores())
    torch.manual_seed(1)
    config = BertConfig(
        num_hidden_layers=layers,
        hidden_size=hidden,
        num_attention_heads=heads,
        intermediate_size=intermediate,
    )
    model = BertModel(config).to(torch.bfloat16 if whole else torch.float32)
    ids = torch.randint(1000, 30000, (batch, length))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5)

    def hidden_states() -> Any:
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return model(**inputs).last_hidden_state

    def forward() -> None:
        model.eval()
        with torch.inference_mode():
            hidden_states()

    def train() -> None:
        model.train()
        optimizer.zero_grad()
        hidden_states().float().pow(2).mean().backward()
        optimizer.step()

    turns.ready("torch", "transformers")
    turns.serve({"forward": forward, "train": train})


if __name__ == "__main__":
    main()
