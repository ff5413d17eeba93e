"""The BertEncoder in the object graph of a Model Garden checkpoint.

Source: tf-models-official, `nlp/modeling/networks/bert_encoder.py`.
"""

from kbert.checkpoints.tensorflow.object_graph import ObjectGraph

# A functional encoder (BertEncoder, and the published files) numbers its layers with weights:
# three embeddings, their norm, the blocks, the pooler.
_NUMBERED = "layer_with_weights-"
_BEFORE_BLOCKS = ("_embedding_layer", "_position_embedding_layer", "_type_embedding_layer",
                  "_embedding_norm_layer")


class EncoderKeys:
    """The variables of one encoder by their paths from it, under the names of BertEncoderV2.

    Args:
        graph: The checkpoint's objects.
        encoder: The node of the encoder.
        numbered: The numbers of its blocks, in order.

    Attributes:
        num_layers: The number of blocks.
    """

    def __init__(self, graph: ObjectGraph, encoder: int, numbered: list[int]) -> None:
        self.graph = graph
        self.encoder = encoder
        self.num_layers = len(numbered)
        self._numbers = numbered

    def find(self, path: str) -> str | None:
        """Returns the key of the variable at a path, or None."""
        return self.graph.key(self.encoder, self._in_file(path))

    def of(self, path: str) -> str:
        """Returns the key of a variable that was found before."""
        return str(self.find(path))

    def shape(self, path: str) -> tuple[int, ...]:
        """Returns the shape of a required variable."""
        key = self.find(path)
        if key is None:
            raise ValueError(f"The encoder of a Model Garden checkpoint must have {path}.")
        return self.graph.shapes[key]

    def inside(self) -> set[str]:
        """Returns the keys of all variables below the encoder."""
        return set(self.graph.variables_below(self.encoder))

    def _in_file(self, path: str) -> str:
        """Returns the path in this file."""
        if self.graph.descend(self.encoder, "_embedding_norm_layer") is not None:
            return path
        first, _, rest = path.partition("/")
        if first == "_transformer_layers":
            index, _, rest = rest.partition("/")
            if int(index) >= self.num_layers:
                return path
            return f"{_NUMBERED}{self._numbers[int(index)]}/{rest}"
        if first == "_pooler_layer":
            return f"{_NUMBERED}{self._numbers[-1] + 1}/{rest}"
        return f"{_NUMBERED}{_BEFORE_BLOCKS.index(first)}/{rest}"


def find_encoder(graph: ObjectGraph, source: str) -> tuple[int, list[int]]:
    """Finds the encoder nearest to the root.

    Args:
        graph: The checkpoint's objects.
        source: The origin that the error names.

    Returns:
        Its node, and the numbers of its blocks in order.

    Raises:
        ValueError: If there is none.
    """
    for node in graph.nodes():
        children = graph.children(node)
        if "_embedding_norm_layer" in children and "_transformer_layers" in children:
            blocks = graph.children(children["_transformer_layers"])
            return node, sorted(int(name) for name in blocks if name.isdigit())
        numbered = [
            int(name.removeprefix(_NUMBERED))
            for name, child in children.items()
            if name.startswith(_NUMBERED) and "_attention_layer" in graph.children(child)
        ]
        if numbered:
            return node, sorted(numbered)
    keys = ", ".join(sorted(graph.shapes)[:8])
    raise ValueError(
        f"{source} must hold a BertEncoder of Model Garden (tf-models-official). Received an "
        f"object graph with: {keys}, ..."
    )
