"""How fast PyTorch multiplies large square matrices on this machine."""

from side_by_side.turns import Turns, cores

turns = Turns()

import torch


def main() -> None:
    """Answers with milliseconds of one product "gemm"."""
    torch.set_num_threads(cores())
    size, dtype = turns.settings["size"], getattr(torch, turns.settings["precision"])
    a, b = (torch.randn(size, size).to(dtype) for _ in range(2))
    turns.ready("torch")
    turns.serve({"gemm": lambda: torch.mm(a, b)})


if __name__ == "__main__":
    main()
