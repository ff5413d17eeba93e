"""Base of every task's model: an encoder with a head, on token ids or on raw texts."""

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops, tree
from keras.utils import unpack_x_y_sample_weight as unpacked

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.models.encoder import checked_arguments, checked_ids
from kbert.optimization.adamw import AdamW
from kbert.optimization.losses import whole_batch_loss
from kbert.optimization.steps import function_of_replicas, outputs_of_step, quiet_end, whole_epochs


class TaskModel(keras.Model):
    """A Keras model with a task's own loss and metrics as defaults, whose inputs may be raw texts.

    Without `batching_type` it takes token ids, on every Keras backend. With it, raw texts too: its
    `batching` makes batches of texts, its `replication` trains within a strategy's scope.
    """

    batching_type: Any = None
    batching: Any = None
    replication: Any = None  # None: Keras' own methods, by a `super()` that mypy cannot read
    tokenizer: Any = None
    max_sequence_length: int
    huggingface_architecture: str | None = None  # the class of transformers with the same head
    problem_types: tuple[str, ...] = ("single_label_classification", "regression")  # of its heads
    formats: tuple[str, ...] = ("kbert", "huggingface")
    default_sequence_length = 128
    needs_pooler = True  # whether a checkpoint without a pooler is incomplete
    head_form: str | None = None  # attribute of encoders with a `HeadForm` for the task
    head_names: tuple[str, ...] = ("classifier.", "hidden.", "qa_outputs.")  # of saved weights
    head_may_be_partial = False  # whether some layers of the head may lack weights on disk
    tokenizer_rules: dict[str, Any] = {}  # arguments of the tokenizer, whatever was saved
    completed: Any = None  # class method that adds what other files say to a `Checkpoint`
    parts: tuple[str, ...] = ("encoder", "tokenizer")  # arguments, serialized as objects
    arguments: tuple[str, ...] = ()  # the constructor's others, as they are

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**checked_arguments(type(self), kwargs))
        if self.batching_type is not None:
            self.batching = self.batching_type(self)
            self.replication = self.batching.replication

    @classmethod
    def from_pretrained(cls, name_or_directory: str | os.PathLike[str], **kwargs: Any) -> Any:
        """Loads a saved model, or puts a new head on an encoder.

        Args:
            name_or_directory: a known name ("bert-base-uncased", "all-MiniLM-L6-v2", ...), an
                `org/name` of the Hugging Face hub, or a directory with a checkpoint; one with a
                head of this task (kbert's or Hugging Face's) yields a model that is ready to use.
            **kwargs: arguments of the constructor, or of `Bert`; or `from_other_task=True`, to take
                the encoder of another task's model, with a new head.

        Raises:
            ValueError: the model is of another task, or its head does not fit.
        """
        from kbert.pipelines.saved_pipeline import load_pipeline

        return load_pipeline(cls, name_or_directory, **kwargs)

    def save_pretrained(
        self, directory: str | os.PathLike[str], format: str = "kbert", overwrite: bool = False
    ) -> Path:
        """Writes weights, vocabulary and names of labels for `from_pretrained`.

        Args:
            directory: the directory to create; it is returned.
            format: one of the class's `formats`.
            overwrite: whether an existing directory may be replaced, with all that it holds.

        Raises:
            ValueError: the format is unknown or cannot hold the model.
            FileExistsError: the directory exists, and may not be replaced.
        """
        from kbert.pipelines.saved_pipeline import save_pipeline

        return save_pipeline(self, directory, format, overwrite)

    @classmethod
    def default_settings(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        """Returns arguments of the constructor that follow from the contents of `checkpoint`."""
        return {}

    @classmethod
    def huggingface_architectures(cls) -> tuple[str, ...]:
        """Returns the classes of transformers whose heads can be loaded."""
        return (cls.huggingface_architecture,) if cls.huggingface_architecture else ()

    def head_layers(self) -> dict[str, Any]:
        """Returns the layers of the head by the names that their weights are saved under.

        Each has no other weights than `kernel`, `bias`, `gamma` and `beta`, as `Linear` has. Names
        that Hugging Face has for such a layer make its checkpoints fit.
        """
        raise NotImplementedError(f"{type(self).__name__} must name the layers of its head")

    def default_loss(self) -> Any:
        """Returns the task's loss."""
        raise NotImplementedError(f"{type(self).__name__} must say its loss")

    def default_optimizer(self) -> Any:
        """Returns AdamW with its default learning rate."""
        return AdamW()

    def default_metrics(self) -> list[Any]:
        """Returns the metrics that are reported during training."""
        return []

    def read_inputs(self, x: Any) -> Any:
        """Reads `x` as the task's raw texts to train on; returns None if it is something else."""
        raise NotImplementedError(f"{type(self).__name__} must say what its texts are")

    def examples(self, inputs: Any, y: Any) -> Any:
        """Returns windows to train on of `inputs`, from `read_inputs`, and of `y` their targets."""
        raise NotImplementedError(f"{type(self).__name__} must say what its targets are")

    def encode_targets(self, y: Any) -> Any:
        """Encodes n targets `y`, as users write them, as numbers."""
        return self.batching.encode_targets(y)

    def preprocess(self, *texts: Any) -> Any:
        """Tokenizes `*texts`, strings (B,), as `batching` does, as graph code."""
        return self.batching.preprocess(*texts)

    def pack(self, *texts: Any) -> Any:
        """Tokenizes `*texts` once for all epochs; of pairs, the first and the second texts."""
        return self.batching.pack(*texts)

    def dataset(self, packed: Any, targets: Any = None, **kwargs: Any) -> Any:
        """Returns length-bucketed batches as a `tf.data.Dataset`.

        Args:
            packed: tokenized texts from `pack`, or windows from `examples`.
            targets: their targets as numbers, or None.
            **kwargs: arguments of `batched_dataset`, or for translation of `parallel_dataset`.
        """
        return self.batching.dataset(packed, targets, **kwargs)

    def compile(
        self,
        optimizer: Any = None,
        loss: Any = None,
        metrics: Any = None,
        jit_compile: Any = None,
        **kwargs: Any,
    ) -> None:
        """Prepares the model for training, within the strategy's scope if there is one.

        Args:
            optimizer: a Keras optimizer or its name; None for the task's own.
            loss: a Keras loss or its name; None for the task's own. Those of classes get logits;
                one that needs distributions gets them from ids too, as do all metrics beside it.
            metrics: a list of Keras metrics or their names, of logits too; None for the own ones.
            jit_compile: True for XLA, which would recompile for each length of texts; None for
                False with raw texts on TensorFlow, and else as Keras chooses.
            **kwargs: further arguments of Keras' `compile`.

        Raises:
            ValueError: loss or metric is of probabilities, or replicas cannot share the loss.
        """
        self.note_compiled([loss, metrics, kwargs.get("weighted_metrics")])
        if jit_compile is None:
            is_text = self.batching is not None and keras.backend.backend() == "tensorflow"
            jit_compile = False if is_text else "auto"
        with self.replication.compiling(optimizer, loss) if self.replication else nullcontext():
            super().compile(
                optimizer=self.default_optimizer() if optimizer is None else optimizer,
                loss=self.default_loss() if loss is None else loss,
                metrics=self.default_metrics() if metrics is None else metrics,
                jit_compile=jit_compile,
                **kwargs,
            )

    def note_compiled(self, given: list[Any]) -> None:
        """Checks and notes `given`, the loss and the metrics that `compile` received."""

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model like the saved one; Keras needs it where `compile` is its own."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)  # so that its state can be loaded

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        *,
        batch_tokens: int | None = None,
        validation_data: Any = None,
        shuffle: bool = True,
        sample_weight: Any = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> Any:
        """Runs Keras' `fit`, also on raw texts; returns Keras' history.

        Args:
            x: raw texts: a list, array, iterator or column of str, a tuple of several, a dict or
                table of columns, or a dataset of batches; or token ids.
            y: a target a text; None where `x` has them.
            batch_size: examples a batch; by default the task's own number.
            epochs: passes over the data.
            verbose: 0 is silent, 1 draws a bar, 2 prints a line an epoch; "auto" is 1 as a rule.
            batch_tokens: the most positions of a batch of texts, padding included, instead of
                `batch_size`; pairs of sentences are always batched by it.
            validation_data: (x, y) or (x, y, weights) in the same forms, or a dataset.
            shuffle: whether to shuffle, differently in each epoch.
            sample_weight: a weight a text, where an example is one text or pair.
            seed: seed of the shuffling of texts; Keras shuffles token ids by its own.
            **kwargs: further arguments of Keras' `fit`.

        Raises:
            ValueError: texts, targets, task and `batch_tokens` do not fit, or `epochs` is below 1.
            TypeError: an entry of `x` is neither str nor bytes.
        """
        given = {"x": checked_ids(x, self), "y": y, "batch_size": batch_size, "shuffle": shuffle}
        given |= {"validation_data": validation_data, "sample_weight": sample_weight, **kwargs}
        if self.batching is not None:
            given = self.batching.fit_arguments(batch_tokens=batch_tokens, seed=seed, **given)
        elif batch_tokens is not None:
            raise ValueError(f"`batch_tokens` must be None for token ids. Received: {batch_tokens}")
        with quiet_end(given["x"], given.get("steps_per_epoch")):
            return super().fit(epochs=whole_epochs(epochs), verbose=verbose, **given)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Computes loss and metrics, also on raw texts.

        Args:
            x: raw texts or token ids, in the forms of `fit`.
            y: a target a text; None where `x` has them.
            batch_size: examples a batch; None for as many as fill a budget of positions.
            verbose: 0 is silent, 1 draws a bar, 2 prints a line; "auto" is 1 as a rule.
            sample_weight: a weight a text, where an example is one text or pair.
            **kwargs: further arguments of Keras' `evaluate`, such as `return_dict`.
        """
        x = checked_ids(x, self)
        given = {"x": x, "y": y, "batch_size": batch_size, "sample_weight": sample_weight}
        if self.batching is not None and "_use_cached_eval_dataset" not in kwargs:  # of `fit`
            given = self.batching.evaluate_arguments(**given)
        return super().evaluate(**given, verbose=verbose, **kwargs)

    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = 0, **kwargs: Any
    ) -> Any:
        """Predicts raw texts, in the order of `x`, or token ids.

        Args:
            x: raw texts or token ids, in the forms of `fit`.
            batch_size: examples a batch; by default as many as fill a budget of positions.
            verbose: 0 is silent, 1 draws a bar, 2 prints a line; "auto" is 1 as a rule.
            **kwargs: further arguments of Keras' `predict`.

        Returns:
            Of raw texts, what the task's class describes; of token ids, outputs of `predict_step`.
        """
        read = self.predict_numbers if self.batching is None else self.batching.predict
        return read(x, batch_size=batch_size, verbose=verbose, **kwargs)

    def predict_numbers(self, x: Any, **kwargs: Any) -> Any:
        """Runs Keras' `predict`, with its `**kwargs`, on token ids `x`: arrays or a dataset."""
        with nullcontext() if self.replication is None else self.replication.predicting():
            return super().predict(checked_ids(x, self), **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and self.batching is not None:
            args = (self.batching.call_inputs(args[0]), *args[1:])
        return super().__call__(*args, **kwargs)

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Runs Keras' `train_on_batch` on `x`, `y` and `sample_weight` as `fit` takes them.

        Keys of `class_weight` may be names of labels; with `return_dict` the results have names.
        """
        if self.batching is not None:
            x, y, sample_weight = unpacked(self.batching.one_batch(x, y, sample_weight))
            y = None if y is None else tree.map_structure(np.asarray, y)  # for Keras' weights
            class_weight = self.batching.encode_class_weight(class_weight)
        return super().train_on_batch(x, y, sample_weight, class_weight, return_dict)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """Runs Keras' `test_on_batch`; `x`, `y`, `sample_weight`, `return_dict` as in training."""
        if self.batching is not None:
            x, y, sample_weight = unpacked(self.batching.one_batch(x, y, sample_weight))
        return super().test_on_batch(x, y, sample_weight, return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """Runs Keras' `predict_on_batch`; of raw texts `x`, returns what `predict` returns."""
        is_text = self.batching is not None and self.batching.holds_texts(x)
        return self.predict(x) if is_text else super().predict_on_batch(x)

    @property
    def distribute_strategy(self) -> Any:
        """Returns the strategy that the model was made with, or TensorFlow's default."""
        return (self.replication or super()).distribute_strategy  # type: ignore[union-attr]

    def train_step(self, *args: Any) -> Any:
        """Runs Keras' training step, or that of `replication`."""
        return (self.replication or super()).train_step(*args)  # type: ignore[union-attr]

    def test_step(self, *args: Any) -> Any:
        """Runs Keras' test step, or that of `replication`."""
        return (self.replication or super()).test_step(*args)  # type: ignore[union-attr]

    def predict_step(self, *args: Any) -> Any:
        """Returns `batch_outputs` of a batch, the last of `args`; Keras on JAX adds its state."""
        return outputs_of_step(self, *args)

    def batch_outputs(self, inputs: Any) -> Any:
        """Returns what `predict` has of one batch, token ids as `inputs`."""
        return self(inputs, training=False)

    def make_train_function(self, force: bool = False) -> Any:
        """Builds the optimizer first, otherwise TensorFlow would trace the function twice."""
        with self.replication.scope() if self.replication else nullcontext():
            if not self.optimizer.built:
                self.optimizer.build(self.trainable_variables)
        made = function_of_replicas(self, "train_function", force)
        return super().make_train_function(force) if made is None else made

    def make_test_function(self, force: bool = False) -> Any:
        """Makes Keras' function, or that of `replication` within a strategy's scope."""
        made = function_of_replicas(self, "test_function", force)
        return super().make_test_function(force) if made is None else made

    def make_predict_function(self, force: bool = False) -> Any:
        """Makes Keras' function, or that of `replication` within a strategy's scope."""
        made = function_of_replicas(self, "predict_function", force)
        return super().make_predict_function(force) if made is None else made

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        if self.replication is None or not self.replication.build_symbolically(iterator):
            super()._maybe_symbolic_build(iterator, data_batch)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Computes Keras' loss, of the whole batch where several replicas share one."""
        rows = ops.shape(tree.flatten(y_pred)[0])[0]
        if y is not None:
            y, y_pred = self.targets_of_loss(y, y_pred)
        return whole_batch_loss(super().compute_loss(x, y, y_pred, sample_weight, training), rows)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Computes Keras' metrics, of targets as the loss takes them."""
        if y is not None:
            y, y_pred = self.targets_of_loss(y, y_pred)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def targets_of_loss(self, y: Any, y_pred: Any) -> tuple[Any, Any]:
        """Returns `y` and `y_pred` in the form that loss and metrics take."""
        return y, y_pred

    def get_config(self) -> dict[str, Any]:
        held = [(name, getattr(self, name, None)) for name in self.parts]
        parts = {n: keras.saving.serialize_keras_object(part) for n, part in held if part}
        return {**super().get_config(), **parts, **{n: getattr(self, n) for n in self.arguments}}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes the model of a configuration from `get_config`."""
        try:
            parts = {name: config[name] for name in cls.parts if name in config}
            made = {n: keras.saving.deserialize_keras_object(part) for n, part in parts.items()}
            return cls(**{**config, **made})
        except TypeError as error:
            # Keras adds the configuration, vocabulary and all, to the message of a TypeError.
            message = f"`config` must fit {cls.__name__}. Received: one with which it fails: "
            raise ValueError(f"{message}{error!s:.300}") from None
