"""`Encoder`, what heads, text models and checkpoints ask of an encoder, and how one is made.

Shapes: B rows, T tokens, N heads, D width.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from kbert.architectures import encoder_class, loaded
from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.hints import nearest

_Class = TypeVar("_Class", bound=type)
# Arguments of `FeatureBasedEncoder` that stand beside those of the frozen encoder.
OF_READERS = ("features", "reader", "reader_dim", "num_reader_layers")
# Hugging Face's names of the inputs.
_NAMES_ELSEWHERE = {
    "input_ids": "token_ids",
    "token_type_ids": "segment_ids",
    "attention_mask": "padding_mask",
}


@dataclass(frozen=True)
class HeadForm:
    """The head that an encoder was published with for one answer a sequence.

    Attributes:
        head: "pooler", a dense layer on the pooled output, or "two_layer", two on the state of
            [CLS]; the default of the tasks.
        activation: of the first of two layers.
        drops_state: whether dropout precedes the first of two layers as well as the second.
    """

    head: str = "pooler"
    activation: str = "tanh"
    drops_state: bool = True


@runtime_checkable
class Encoder(Protocol):
    """A model from token ids to hidden states.

    Called with a dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
    (B, T), of which the last two may be absent, it returns `sequence_output` (B, T, D), undefined
    at padded positions, and, where `pooler` is not None, `pooled_output` (B, D).
    """

    vocabulary_size: int  # number of token embeddings
    max_sequence_length: int  # most tokens of a sequence
    hidden_dim: int  # D
    num_layers: int  # number of blocks
    causal: bool  # whether a token attends to those before it only
    initializer_range: float  # standard deviation of new weights, of heads too
    token_activation: str  # name of the activation in the head of masked tokens
    layer_norm_epsilon: float  # added to the variance in layer normalization, as in that head
    embeddings: Any  # a layer with the table of tokens as `token_embedding.embeddings`
    pooler: Any  # the last layer before `pooled_output`; None where there is none
    sequence_form: HeadForm  # the head that classes and numbers of a sequence have by default
    choice_form: HeadForm  # the same for a choice of several
    span_dropout: float  # rate of the dropout before the head of answer spans

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Encodes a batch, with the arguments of Keras' call, such as `training`."""

    def hidden_states(self, inputs: Any, training: bool | None = None) -> list[Any]:
        """Returns the embeddings and the output of each block: num_layers + 1 arrays (B, T, D)."""

    def attention_scores(self, inputs: Any) -> list[Any]:
        """Returns each block's attention probabilities, without dropout: (B, N, T, T); or none."""

    def to_checkpoint(self) -> Checkpoint:
        """Returns configuration and weights under the canonical names."""


def encoder_of(checkpoint: Checkpoint, **kwargs: Any) -> Any:
    """Makes the `Encoder` of a checkpoint that was read, of whatever architecture.

    `kwargs` are those of `EncoderModel.from_checkpoint`. With `features`, and other arguments of
    `FeatureBasedEncoder`, or for a checkpoint of one, it stays frozen in a `FeatureBasedEncoder`.

    Raises:
        ValueError: the architecture is unknown, or weights do not fit.
    """
    reading = {name: kwargs.pop(name) for name in OF_READERS if name in kwargs}
    made = encoder_class(checkpoint.architecture)
    if not reading and not checkpoint.features:
        return made.from_checkpoint(checkpoint, **kwargs)
    for name in ("adapter", "gradient_checkpointing", "dropout"):
        if reading and kwargs.get(name):
            raise ValueError(
                f"`{name}` must be left out with `features`, of an encoder that stays as it is. "
                f"Received: {name}={kwargs[name]!r}"
            )
    kwargs["needs_pooler"] = False  # which is not read
    encoder = made.from_checkpoint(checkpoint, **kwargs)
    return loaded("kbert.models.feature_based.feature_based")(checkpoint, encoder, **reading)


def new_encoder(checkpoint: Checkpoint, **kwargs: Any) -> Any:
    """Makes an encoder of a checkpoint's architecture and sizes, with random weights.

    `kwargs` are arguments of its constructor that replace the checkpoint's, as far as it has them.
    """
    made = encoder_class(checkpoint.architecture)
    return made(**{**checkpoint.config, **made._taken(kwargs)})


def argument_names(cls: type) -> set[str]:
    """Returns the names of the arguments of a class's constructor, and of those it calls."""
    makers = [vars(one)["__init__"] for one in cls.__mro__ if "__init__" in vars(one)]
    return {name for maker in makers for name in inspect.signature(maker).parameters}


def checked_arguments(
    cls: type, given: dict[str, Any], others: Iterable[str] = ()
) -> dict[str, Any]:
    """Returns `given`, once it is sure that the constructor of `cls` has these arguments.

    Raises:
        ValueError: one is neither there nor in `others`; with the nearest, as Keras' has not.
    """
    known = {*argument_names(cls), *others} - {"self", "args", "kwargs"}
    for name in given:
        if name not in known:
            raise ValueError(
                f"`{name}` must be left out: {cls.__name__} has no such argument."
                f"{nearest(name, known)}"
            )
    return given


def leave_pooler(encoder: Encoder) -> None:
    """Excludes the pooler, if there is one, from training, for a model that does not read it.

    It goes on training where another model on the encoder reads it.
    """
    pooler = encoder.pooler
    if pooler is not None and not getattr(pooler, "is_read", False):
        is_frozen = not getattr(encoder, "trainable", True)  # the pooler with all the rest
        pooler.is_left = getattr(pooler, "is_left", False) or pooler.trainable or is_frozen
        pooler.trainable = False  # nothing would train it


def read_pooler(encoder: Encoder) -> None:
    """Notes that a model reads the pooler, which trains again if others only had left it."""
    pooler = encoder.pooler
    if getattr(pooler, "is_left", False):
        pooler.trainable = getattr(encoder, "trainable", True)  # frozen since, maybe
    pooler.is_left, pooler.is_read = False, True


def check_inputs(inputs: Any) -> None:
    """Raises a ValueError unless the inputs of an encoder have kbert's names, and shapes (B, T)."""
    received = f"{type(inputs).__name__}{getattr(inputs, 'shape', '')}"
    if isinstance(inputs, dict):
        if "token_ids" in inputs and not set(inputs) & set(_NAMES_ELSEWHERE):
            _check_shapes(inputs)
            _check_integers(inputs)
            return
        received = f"a dict of {sorted(inputs)}"
        named = [f"{key} is `{_NAMES_ELSEWHERE[key]}`" for key in inputs if key in _NAMES_ELSEWHERE]
        received += f"; here {', '.join(named)}" if named else ""
    raise ValueError(
        "`inputs` must be a dict of `token_ids` int (B, T), and `segment_ids` int (B, T) and "
        f"`padding_mask` bool (B, T) where they are needed. Received: {received}"
    )


def _check_shapes(inputs: dict[str, Any]) -> None:
    """Raises a ValueError for known shapes that are not (B, T), or not alike."""
    length = None
    for name in ("token_ids", "segment_ids", "padding_mask"):
        shape = getattr(inputs.get(name), "shape", None)
        if shape is None or getattr(shape, "rank", 2) is None:
            continue
        if len(shape) != 2 or None not in (length, shape[1]) and length != shape[1]:
            wanted = "(B, T)" if length is None else f"(B, T) with T={length}"
            raise ValueError(f"`{name}` must have the shape {wanted}. Received: {tuple(shape)}")
        length = shape[1] if length is None else length


def _check_integers(inputs: dict[str, Any]) -> None:
    """Raises a ValueError for ids of a known type that are no integers, or such a mask."""
    for name in ("token_ids", "segment_ids", "padding_mask"):
        dtype = getattr(inputs.get(name), "dtype", None)
        found = str(getattr(dtype, "name", dtype))
        is_mask = name == "padding_mask"
        if dtype is not None and "int" not in found and not (is_mask and found == "bool"):
            wanted = "bool, or of integers" if is_mask else "of integers"
            raise ValueError(f"`{name}` must be {wanted}. Received: {dtype}")


def encoder_inputs(inputs: Any, encoder: Any) -> dict[str, Any]:
    """Returns the inputs of a call of an encoder, with lists as arrays, once all is checked.

    Raises:
        ValueError: names or shapes are others than (B, T), or what `id_arrays` raises.
    """
    check_inputs(inputs)
    made = id_arrays(inputs, encoder)
    _check_shapes(made)  # lists have shapes now
    return made


def checked_ids(x: Any, model: Any) -> Any:
    """Returns `x` of `fit`, `evaluate` or `predict` of a model on an encoder, once it is sure that
    its ids, where they are arrays by name, are of the encoder; see `id_arrays`."""
    return id_arrays(x, model.encoder) if isinstance(x, dict) and "token_ids" in x else x


def ids_checked(model_class: _Class) -> _Class:
    """Has Keras' loops of a class of encoders check ids in arrays, as calls do."""

    def checked(name: str) -> Callable[..., Any]:
        run = getattr(model_class, name)

        def checked_run(self: Any, x: Any = None, *args: Any, **kwargs: Any) -> Any:
            x = encoder_inputs(x, self) if isinstance(x, dict) else x
            return run(self, x, *args, **kwargs)

        told = f"Runs Keras' `{name}` on `x`, with its `*args` and `**kwargs`"
        checked_run.__name__, checked_run.__doc__ = name, f"{told}; ids in arrays are checked."
        return checked_run

    for name in ("fit", "evaluate", "predict"):
        setattr(model_class, name, checked(name))
    return model_class


def id_arrays(inputs: dict[str, Any], encoder: Any) -> dict[str, Any]:
    """Returns ids (B, T), or (B, K, T) of K choices, with lists as arrays, once they are checked.

    Raises:
        ValueError: rows differ in length or have more tokens than the encoder has positions, shapes
            are not alike, or an id is no integer, or not one that the encoder has.
    """
    made = dict(inputs)
    for name, value in inputs.items():
        is_ragged = hasattr(value, "row_splits")  # a RaggedTensor
        if isinstance(value, list | tuple):
            try:
                made[name] = np.asarray(value)
            except ValueError:  # NumPy's has no name, and speaks of dimensions
                is_ragged = True
        if is_ragged:
            raise ValueError(
                f"`{name}` must have rows of one length, padded where `padding_mask` is False. "
                f"Received: {value!r:.80}"
            )
    _check_alike(made)
    shape, longest = made["token_ids"].shape, encoder.max_sequence_length
    length = None if getattr(shape, "rank", 2) is None else shape[-1]
    if length == 0:
        raise ValueError(f"`token_ids` must have a token a row. Received: shape={tuple(shape)}")
    _check_integers(made)
    if length is not None and length > longest:  # on a GPU a gather reads zeros there
        raise ValueError(
            f"`token_ids` must not be longer than `max_sequence_length`={longest}. "
            f"Received: length {length}"
        )
    _check_range("token_ids", made, encoder.vocabulary_size, "the encoder's vocabulary")
    segments = getattr(encoder, "num_segments", 0)
    if segments > 1:  # otherwise they are not read
        _check_range("segment_ids", made, segments, "the encoder's segments")
    return made


def _check_alike(inputs: dict[str, Any]) -> None:
    """Raises a ValueError unless known shapes have two dimensions at least, and are the same."""
    whole: tuple[int | None, ...] | None = None
    for name in ("token_ids", "segment_ids", "padding_mask"):
        value = inputs.get(name)
        shape = getattr(value, "shape", ())
        if value is None or getattr(shape, "rank", 2) is None:
            continue
        found = tuple(shape)
        if len(found) < 2:
            raise ValueError(f"`{name}` must have the shape (B, T). Received: {found}")
        whole = whole or found
        pairs = zip(found, whole)
        if len(found) != len(whole) or any(None not in two and two[0] != two[1] for two in pairs):
            raise ValueError(f"`{name}` must have the shape {whole}, as others. Received: {found}")


def _check_range(name: str, inputs: dict[str, Any], size: int, of_what: str) -> None:
    ids: Any = inputs.get(name)
    if hasattr(ids, "numpy"):  # TensorFlow's tensors, outside of graphs
        ids = ids.numpy()
    if isinstance(ids, np.ndarray) and ids.size:
        for found in (int(ids.min()), int(ids.max())):
            if not 0 <= found < size:
                raise ValueError(f"`{name}` must be in [0, {size}), {of_what}. Received: {found}")
