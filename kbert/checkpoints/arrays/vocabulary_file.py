"""The vocabulary beside a checkpoint: one token per line in a file, or in `tokenizer.json`."""

from pathlib import Path

from kbert.checkpoints.arrays.json_object import read_json_object


def find_vocabulary(
    directory: Path, vocabulary_size: int, name: str = "vocab.txt"
) -> tuple[Path | None, tuple[str, ...] | None]:
    """Finds the vocabulary of a checkpoint and checks its size.

    Args:
        directory: The folder of the checkpoint.
        vocabulary_size: Rows of the token embedding. Fewer tokens are fine (padded embeddings).
        name: The vocabulary file's name in this format.

    Returns:
        The file or None, and the tokens in the order of their ids or None.

    Raises:
        ValueError: If there are more tokens than rows.
    """
    path: Path | None = directory / name
    tokens: tuple[str, ...] | None = None
    if path is not None and path.is_file():
        text = path.read_text(encoding="utf-8")
        # Not splitlines(): some tokens are line separators of Unicode.
        tokens = tuple(line.rstrip("\r") for line in text.removesuffix("\n").split("\n"))
    else:
        path, tokens = None, _tokens_of_tokenizer_json(directory / "tokenizer.json")
    if tokens is not None and len(tokens) > vocabulary_size:
        raise ValueError(
            f"The vocabulary of `{directory}` must have at most as many tokens as the token "
            f"embedding has rows. Received: {len(tokens)} tokens, {vocabulary_size} rows"
        )
    return path, tokens


def _tokens_of_tokenizer_json(path: Path) -> tuple[str, ...] | None:
    """Returns the tokens of `tokenizer.json`, if their ids have no gaps."""
    if not path.is_file():
        return None
    model = read_json_object(path).get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocabulary, dict) or not vocabulary:
        return None
    tokens = sorted(vocabulary, key=lambda token: int(vocabulary[token]))
    if [vocabulary[token] for token in tokens] != list(range(len(tokens))):
        return None
    return tuple(tokens)
