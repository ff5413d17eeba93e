"""`Adaptable`: named adapters of an encoder, in the vocabulary of AdapterHub."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import keras
import numpy as np

from kbert.checkpoints.adapter_folder import NamedAdapter, write_adapter
from kbert.layers.adapters.configs import AdapterConfig, adapter_config, config_values
from kbert.models.adapters.adapter_set import ADAPTERS, AdapterSet, listed
from kbert.models.adapters.loading import load_adapter, load_fusion, sizes_of
from kbert.optimization.steps import retraced

ROUTE = "task_ids"  # the input that says which adapter a row has


@retraced
class Adaptable(keras.Model):
    """Base class of encoders of post-norm blocks that take adapters, any number by name.

    One may be active, or several that are fused. `train_adapter` leaves the encoder as it is; a
    task's head, and the pooler where it reads that, train beside the adapter.
    """

    adapters: AdapterSet
    embeddings: Any
    embedding_projection: Any
    layer_blocks: Any
    # Parts of `call`: the mask of a batch, the input of the first block, and a block's output.
    _mask: Any
    _embed: Any
    _encode: Any

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.adapters = AdapterSet(dtype=self.dtype_policy, name=ADAPTERS)
        self._left_out = SimpleNamespace(variables=[])  # that would train; Keras does not look in

    def get_config(self) -> dict[str, Any]:
        state = self.adapters.state()
        return {**super().get_config(), **({ADAPTERS: state} if state else {})}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes the encoder of a configuration from `get_config`."""
        made = cls(**{name: value for name, value in config.items() if name != ADAPTERS})
        if ADAPTERS in config:
            made.adapters.restore(config[ADAPTERS], made)
            made._freeze_body()
        return made

    @property
    def adapter_names(self) -> list[str]:
        """Returns the names of all adapters, in the order in which they were added."""
        return list(self.adapters.parts)

    @property
    def active_adapters(self) -> list[str]:
        """Returns the names of those that are active: none, one, or those of a fusion."""
        return list(self.adapters.active)

    @property
    def adapter_state(self) -> tuple[Any, ...]:
        """Returns all of the adapters that traced graphs hold on to; another one, new graphs."""
        found = self.adapters
        return found.active, found.routed, found.trained, found.removals

    @property
    def has_routed_adapters(self) -> bool:
        """Returns whether each row of a batch has its own of the active adapters."""
        return self.adapters.routed

    def add_adapter(
        self, name: str, config: str | Mapping[str, Any] | AdapterConfig = "pfeiffer"
    ) -> None:
        """Adds a new adapter, which is not active yet.

        Args:
            name: its name, a word.
            config: "houlsby", "pfeiffer" or "lora" with their default settings; a
                `HoulsbyConfig`, `PfeifferConfig` or `LoraConfig`; or a dict of `kind` and settings.

        Raises:
            ValueError: there is an adapter of this name, or the settings are wrong.
        """
        self.adapters.add(name, adapter_config(config), self)
        self._freeze_body()

    def add_adapter_fusion(self, names: Sequence[str], regularization: float = 0.01) -> None:
        """Adds a fusion of Pfeiffer adapters, which is not active yet.

        Args:
            names: two adapters or more; their order belongs to the fusion.
            regularization: factor of |I - W_v|^2 in the loss.

        Raises:
            ValueError: there are fewer than two, or one is not there or of another kind.
        """
        self.adapters.fuse(list(names), self, regularization)
        self._freeze_body()

    def set_active_adapters(self, names: str | Sequence[str] | None) -> None:
        """Makes an adapter active, a fusion of several, or none; what trains stays as it is.

        Args:
            names: a name, those of a fusion in its order, or None.

        Raises:
            ValueError: an adapter is not there, or several are not fused.
        """
        chosen = listed(names)
        self.adapters.members(chosen)
        self.adapters.active, self.adapters.routed = tuple(chosen), False

    def route_adapters(self, names: Sequence[str]) -> None:
        """Makes several adapters active, each for its own rows of a batch; all may train.

        The inputs of a call then have `task_ids` int (B,): the place of a row's adapter in `names`.

        Args:
            names: one name or more.

        Raises:
            ValueError: there is no name, or an adapter is not there, or there twice.
        """
        self.adapters.check(names)
        if not names:
            raise ValueError(f"`names` must hold one adapter or more. Received: {names!r}")
        self.adapters.active, self.adapters.routed = tuple(names), True

    def train_adapter(self, names: str | Sequence[str]) -> None:
        """Makes an adapter or a fusion active, and leaves nothing else of the encoder trainable.

        A fusion trains without its adapters. Of a frozen encoder it trains all the same. Compile
        the model with the encoder afterwards.

        Args:
            names: a name, or those of a fusion in its order.

        Raises:
            ValueError: there is no name, an adapter is not there, or several are not fused.
        """
        chosen = listed(names)
        if not chosen:
            raise ValueError(f"`names` must hold one adapter or more. Received: {names!r}")
        self.set_active_adapters(chosen)
        self.adapters.trained = tuple(chosen)
        if keras.Model.trainable.fget(self):
            self._freeze_body()
        else:
            self.trainable = True  # freezes the rest, too

    def train_encoder(self) -> None:
        """Undoes `train_adapter`: everything of the encoder trains that may."""
        self.adapters.trained = ()
        self._freeze_body()

    def fusion_weights(self, inputs: Any) -> list[Any]:
        """Returns the weights of the active fusion's N adapters: num_layers arrays (B, T, N).

        Those of a token add up to 1 in each layer; those of padded positions mean nothing.

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.

        Raises:
            ValueError: no fusion is active.
        """
        if len(self.active_adapters) < 2 or self.adapters.routed:
            raise ValueError(
                "`active_adapters` must be those of a fusion, which have weights. "
                f"Received: {', '.join(self.active_adapters) or 'none'}"
            )
        seen: list[Any] = []
        mask, hidden = self._mask(inputs), self._embed(inputs, False)
        for block, adapter in self._stack(inputs, seen=seen):
            hidden = self._encode(block, hidden, mask, False, adapter)
        return seen

    def save_adapter(
        self, directory: str | os.PathLike[str], name: str, overwrite: bool = False
    ) -> Path:
        """Writes an adapter alone, without the encoder; returns the folder.

        Args:
            directory: the folder to make.
            name: the adapter's name.
            overwrite: whether an existing folder may be replaced, with all that it holds.

        Raises:
            ValueError: there is no such adapter.
            FileExistsError: the folder exists, and may not be replaced.
        """
        self.adapters.check([name])
        variables = self.adapters.variables_of(name)
        arrays = {path: np.asarray(variable) for path, variable in variables.items()}
        values = config_values(self.adapters.configs[name])
        adapter = NamedAdapter(name, values, sizes_of(self), arrays)
        return write_adapter(adapter, directory, overwrite)

    def load_adapter(
        self, name_or_directory: str | os.PathLike[str], name: str | None = None
    ) -> str:
        """Adds an adapter that was saved, which is not active yet; returns its name.

        Args:
            name_or_directory: a folder of `save_adapter`, or of that of AdapterHub's library with
                `use_safetensors=True`; or a model or a run with an active adapter, whose encoder
                and head are left out.
            name: its name here; None for the one that it was saved with.

        Raises:
            ValueError: it is of encoders of other sizes, or of other weights where they are beside
                it, there is one of its name, kbert does not compute its settings, or a file is
                damaged.
            FileNotFoundError: there is no such folder.
        """
        return load_adapter(self, name_or_directory, name)

    def load_adapter_fusion(
        self, directory: str | os.PathLike[str], names: Sequence[str] | None = None
    ) -> list[str]:
        """Adds a fusion that AdapterHub's library saved, which is not active yet.

        Args:
            directory: the folder, which does not hold the adapters themselves.
            names: the adapters' names here, in the order of the fusion; None for those in the file.

        Returns:
            The adapters' names.

        Raises:
            ValueError: an adapter is not there, the fusion is of encoders of other sizes or has
                settings that kbert does not compute, or a file is damaged.
            FileNotFoundError: there is no such folder.
        """
        return load_fusion(self, directory, names)

    def delete_adapter(self, name: str) -> None:
        """Removes an adapter that is not active, and the fusions of it.

        If it was trained, alone or in a fusion, the whole encoder trains afterwards.

        Args:
            name: its name.

        Raises:
            ValueError: it is not there, or active.
        """
        self.adapters.remove(name)
        self._freeze_body()

    def merge_adapter(self, name: str) -> None:
        """Adds a LoRA adapter to the encoder's weights and removes it; outputs stay the same.

        The whole encoder trains then: compile a model with it before it goes on training.

        Args:
            name: its name.

        Raises:
            ValueError: it is not there, not active, or no LoRA; or blocks are shared by layers.
        """
        self.adapters.check([name])
        if self.active_adapters != [name] or not self.adapters.configs[name].merges:
            raise ValueError(
                f"`name` must be that of an active LoRA adapter. Received: {name!r}, a "
                f"{type(self.adapters.configs[name]).__name__}; active: {self.active_adapters}"
            )
        if self._shares_blocks:
            raise ValueError(
                "`name` must be of an encoder with a block for each layer. Received: a "
                f"{type(self).__name__}, whose layers share blocks"
            )
        for kernel, added in self._low_rank(name):
            kernel.assign(added.merged(kernel))
        self.set_active_adapters(None)
        self.train_encoder()
        self.adapters.remove(name)

    def _low_rank(self, name: str) -> list[tuple[Any, Any]]:
        """Returns the kernels that a LoRA adapter adds to, with its additions."""
        found = []
        for block, part in zip(self.layer_blocks, self.adapters.parts[name].blocks):
            layers = {
                "qkv": block.attention.qkv,
                "attention_output": block.attention.output_linear,
                "intermediate": block.feed_forward.intermediate,
                "output": block.feed_forward.output_linear,
            }
            found += [(layers[layer].kernel, added) for layer, added in part.low_rank.items()]
        return found

    @property
    def _shares_blocks(self) -> bool:
        return len(set(map(id, self.layer_blocks))) < len(self.layer_blocks)

    @contextmanager
    def merged_adapter(self) -> Iterator[None]:
        """Has an active LoRA adapter within the encoder's weights, for a graph of fewer products.

        Any other adapter stays beside them.
        """
        names = self.adapters.active
        is_one = len(names) == 1 and not self.adapters.routed
        if not is_one or not self.adapters.configs[names[0]].merges or self._shares_blocks:
            yield
            return
        pairs = self._low_rank(names[0])
        kept = [(kernel, added, keras.ops.convert_to_numpy(kernel)) for kernel, added in pairs]
        try:
            for kernel, added, _ in kept:
                kernel.assign(added.merged(kernel))
            self.set_active_adapters(None)
            yield
        finally:
            self.set_active_adapters(names)
            for kernel, _, before in kept:
                kernel.assign(before)

    def _stack(
        self, inputs: Any, tokens: Any = None, seen: list[Any] | None = None
    ) -> list[tuple[Any, Any]]:
        """Returns the block of each layer with its adapter, None where none is active.

        `tokens` are the `UnpaddedTokens` that the blocks see, None for (B, T); `seen` is a list to
        which the blocks add the weights of the adapters of a fusion.
        """
        blocks, chosen = list(self.layer_blocks), None
        if self.adapters.routed:
            if ROUTE not in inputs:
                raise ValueError(
                    f"`inputs` must have {ROUTE!r} where each row has its own of the adapters "
                    f"{', '.join(self.adapters.active)}; `set_active_adapters` chooses one for "
                    f"all. Received: {', '.join(inputs)}"
                )
            shape = keras.ops.shape(inputs["token_ids"])
            chosen = keras.ops.broadcast_to(inputs[ROUTE][:, None], shape)
            chosen = chosen if tokens is None else tokens.of(chosen)
        found = self.adapters.of_blocks(seen, chosen)
        return list(zip(blocks, found or [None] * len(blocks)))

    def _freeze_body(self) -> None:
        """Leaves trainable what `train_adapter` says, of what is not frozen in any case."""
        if getattr(self.pooler, "is_left", False):
            self.pooler.trainable = False  # as no head reads it
        left_out = set(map(id, self._left_out.variables))
        for layer in self._flatten_layers() if left_out else ():
            for variable in layer._trainable_variables:
                if id(variable) in left_out:
                    variable.trainable = layer.trainable
        self._left_out.variables = []
        if not self.adapters.trained:
            return
        own = {
            id(v) for part in self.adapters.members(self.adapters.trained) for v in part.variables
        }
        parts = (self.embeddings, self.embedding_projection, *self.layer_blocks, self.adapters)
        for layer in dict.fromkeys(part for part in parts if part is not None):
            for variable in layer.trainable_variables:
                if id(variable) not in own:
                    variable.trainable = False
                    self._left_out.variables.append(variable)
