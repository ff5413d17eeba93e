"""One call that holds a layer to the Keras ritual of this house."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

POLICIES = ("bfloat16", "mixed_bfloat16")  # beside float32, which the first layer has
TINY = 0.1  # weights that are all smaller: what they do is less than errors that are allowed


def check_layer(
    layer_class: type[keras.layers.Layer],
    init_kwargs: Mapping[str, Any],
    inputs: Any,
    expected_output_shape: Any,
    expected_variables: Mapping[str, tuple[int, ...]] | int | None = None,
    *,
    call_kwargs: Mapping[str, Any] | None = None,
    package: str | None = "kbert",
    output_dtype: str | None = None,
    own_dtype: Sequence[str] = (),
    without_gradient: Sequence[str] = (),
    tolerance: float | None = 0.1,
    dynamic_batch: bool = True,
) -> keras.layers.Layer:
    """Checks construction, calls, shapes, configuration, serialization and dtypes of a layer.

    Args:
        layer_class: the class.
        init_kwargs: arguments of the constructor, without `name` and `dtype`.
        inputs: what `call` takes: a tuple is its positional arguments, anything else its first
            argument. Leaves are NumPy arrays whose first axis is the batch.
        expected_output_shape: the shape, in the structure of the output (dict, tuple, list).
        expected_variables: path -> shape of every weight, without the layer's own name; or their
            number; or None for no check.
        call_kwargs: keyword arguments of `call`: arrays with a batch axis too, or functions.
        package: where the class is registered; None for no check.
        output_dtype: of floating outputs; None means the compute dtype of the policy.
        own_dtype: names of sublayers that keep a policy of their own, on purpose.
        without_gradient: paths of trainable weights that the output does not depend on.
        tolerance: how far results in bfloat16 may lie from those in float32, relative to the
            largest of them, which must not be 0; None for no check. Weights that begin at 0 or
            near it are others while results are compared.
        dynamic_batch: whether the batch axis may be unknown.

    Returns:
        The layer in float32, built, for further checks.
    """
    arguments = inputs if isinstance(inputs, tuple) else (inputs,)
    keywords = dict(call_kwargs or {})
    layer = layer_class(**init_kwargs, name="checked")
    check_config(layer, init_kwargs)
    check_shapes(run(layer, arguments, keywords), expected_output_shape)
    initial = layer.get_weights()
    enlarge_weights(layer)
    output = run(layer, arguments, keywords)
    check_variables(layer, expected_variables)
    check_calls(layer, arguments, keywords, output, expected_output_shape)
    traced = check_dynamic_batch if dynamic_batch else check_fixed_batch
    traced(layer, arguments, keywords, output, expected_output_shape)
    check_gradients(layer, arguments, keywords, without_gradient)
    check_serialization(layer, arguments, keywords, output, package)
    check_dtypes(layer, output, "float32", output_dtype, own_dtype)
    for policy in POLICIES:
        other = layer_class(**init_kwargs, name="checked", dtype=policy)
        result = run(other, arguments, keywords)
        check_dtypes(other, result, policy, output_dtype, own_dtype)
        other.set_weights(layer.get_weights())
        if tolerance is not None:
            check_close(run(other, arguments, keywords), output, tolerance, policy, least=0.0)
    layer.set_weights(initial)
    return layer


def takes_training(layer: keras.layers.Layer) -> bool:
    """Whether `call` has an argument `training`."""
    return "training" in inspect.signature(layer.call).parameters


def run(layer: keras.layers.Layer, arguments: tuple, keywords: dict, training: bool = False) -> Any:
    """Calls the layer, with `training` where it takes it."""
    extra = {"training": training} if takes_training(layer) else {}
    tensors, named = map_leaves(tf.convert_to_tensor, (arguments, keywords))
    return layer(*tensors, **named, **extra)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """Applies a function to every array of nested dicts, tuples and lists.

    None and Python functions stay as they are.
    """
    if tree is None or inspect.isroutine(tree):
        return tree
    if isinstance(tree, Mapping):
        return {key: map_leaves(function, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_leaves(function, value) for value in tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(map_leaves(function, value) for value in tree)
    return function(tree)


def assign_weights(layer: keras.layers.Layer, arrays: Mapping[str, Any]) -> None:
    """Gives every weight of a built layer its array, by path without the layer's own name."""
    by_path = {v.path.removeprefix(f"{layer.name}/"): v for v in layer.weights}
    if sorted(by_path) != sorted(arrays):
        raise AssertionError(f"arrays must be {sorted(by_path)}. Received: {sorted(arrays)}")
    for path, variable in by_path.items():
        variable.assign(np.asarray(arrays[path]))


def enlarge_weights(layer: keras.layers.Layer) -> None:
    """Gives trainable weights that are 0 or near it other values, which results depend on."""
    draw = np.random.default_rng(0)
    for variable in layer.trainable_weights:
        if np.abs(np.asarray(variable, "float32")).max(initial=0.0) < TINY:
            rows = variable.shape[-2] if len(variable.shape) > 1 else 4
            variable.assign(draw.uniform(-1.0, 1.0, variable.shape) / np.sqrt(rows))


def leaves(tree: Any) -> list[Any]:
    """Every array of nested dicts, tuples and lists, in order."""
    found: list[Any] = []
    map_leaves(found.append, tree)
    return found


def plain(value: Any) -> bool:
    """Whether a value goes through a configuration unchanged."""
    if isinstance(value, (tuple, list)):
        return all(plain(item) for item in value)
    return value is None or isinstance(value, (bool, int, float, str))


def own_arguments(layer_class: type) -> list[str]:
    """The arguments of the constructor in order, without self, name, dtype and **kwargs."""
    parameters = inspect.signature(layer_class).parameters.values()
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    named = [p.name for p in parameters if p.kind not in kinds]
    return [name for name in named if name not in ("name", "dtype", "trainable")]


def check_config(layer: keras.layers.Layer, init_kwargs: Mapping[str, Any]) -> None:
    """`get_config` lists the constructor's arguments in order, with the values given."""
    config = layer.get_config()
    own = [key for key in config if key not in ("name", "dtype", "trainable")]
    expected = own_arguments(type(layer))
    if own != expected:
        raise AssertionError(f"get_config must list {expected} in this order. Received: {own}")
    for key, value in init_kwargs.items():
        if not plain(value):
            continue
        same = list(value) if isinstance(value, (tuple, list)) else value
        for where, held in (("get_config", config[key]), ("attribute", getattr(layer, key))):
            held = list(held) if isinstance(held, (tuple, list)) else held
            if held != same or isinstance(held, bool) != isinstance(same, bool):
                raise AssertionError(f"{where} {key!r} must be {value!r}. Received: {held!r}")
    again = type(layer).from_config(config).get_config()
    if again != config:
        raise AssertionError(f"from_config must give back {config}. Received: {again}")


def check_shapes(output: Any, expected: Any) -> None:
    """The output has the structure and the shapes that were promised."""
    shapes = map_leaves(lambda x: tuple(x.shape), output)
    if shapes != expected:
        raise AssertionError(f"output shape must be {expected}. Received: {shapes}")


def variable_shapes(layer: keras.layers.Layer) -> list[tuple[str, tuple[int, ...]]]:
    """Path, without the layer's own name, and shape of every weight."""
    return [(v.path.removeprefix(f"{layer.name}/"), tuple(v.shape)) for v in layer.weights]


def check_variables(
    layer: keras.layers.Layer, expected: Mapping[str, tuple[int, ...]] | int | None
) -> None:
    """Paths are unique, and the paths and shapes are those expected."""
    found = variable_shapes(layer)
    paths = [path for path, _ in found]
    repeated = sorted({path for path in paths if paths.count(path) > 1})
    if repeated:
        raise AssertionError(f"variable paths must be unique. Received twice: {repeated}")
    if isinstance(expected, int) and len(found) != expected:
        raise AssertionError(f"there must be {expected} variables. Received: {sorted(found)}")
    if isinstance(expected, Mapping) and dict(found) != dict(expected):
        missing = sorted(set(expected.items()) - set(found))
        added = sorted(set(found) - set(expected.items()))
        raise AssertionError(f"variables differ: missing {missing}, not expected {added}")


def check_calls(
    layer: keras.layers.Layer, arguments: tuple, keywords: dict, output: Any, shape: Any
) -> None:
    """A second call computes the same; training, eager and in a graph, keeps the shapes."""
    check_close(run(layer, arguments, keywords), output, 0.0, "a second call")
    # Autograph would find nothing to convert, and take as long again.
    training = partial(run, layer, training=True)
    for call in (training, tf.function(training, autograph=False)):
        check_shapes(call(arguments, keywords), shape)


def check_fixed_batch(
    layer: keras.layers.Layer, arguments: tuple, keywords: dict, output: Any, shape: Any
) -> None:
    """A trace of the batch as it is computes what the eager call does."""
    traced = tf.function(partial(run, layer), autograph=False)(arguments, keywords)
    check_close(traced, output, 1e-5, "tf.function")
    check_shapes(traced, shape)


def check_dynamic_batch(
    layer: keras.layers.Layer, arguments: tuple, keywords: dict, output: Any, shape: Any
) -> None:
    """A trace with an unknown batch axis works on another batch; symbolic shapes fit."""

    functions = {key: value for key, value in keywords.items() if inspect.isroutine(value)}
    keywords = {key: value for key, value in keywords.items() if key not in functions}

    def spec(x: Any) -> tf.TensorSpec:
        x = tf.convert_to_tensor(x)
        return tf.TensorSpec((None, *x.shape[1:]), x.dtype)

    @tf.function(input_signature=map_leaves(spec, [arguments, keywords]), autograph=False)
    def graph(arguments: tuple, keywords: dict) -> Any:
        return run(layer, arguments, {**keywords, **functions})

    # Twice the batch, so that a batch size frozen in the code comes to light.
    try:
        twice = graph(*map_leaves(lambda x: tf.concat([x, x], axis=0), [arguments, keywords]))
    except (tf.errors.InvalidArgumentError, ValueError) as error:
        reason = next(line for line in reversed(str(error).splitlines()) if "[[" not in line)
        raise AssertionError(f"the batch size must not be frozen. Received: {reason}") from error
    result = map_leaves(lambda x: x[: x.shape[0] // 2], twice)
    check_shapes(result, shape)
    check_close(result, output, 1e-5, "tf.function with another batch")

    def symbol(x: Any) -> Any:
        x = tf.convert_to_tensor(x)
        return keras.Input(shape=x.shape[1:], dtype=x.dtype.name)

    symbols, named = map_leaves(symbol, (arguments, keywords))
    symbolic = map_leaves(lambda x: tuple(x.shape)[1:], layer(*symbols, **named, **functions))
    expected = map_leaves(lambda x: tuple(x.shape)[1:], output)
    if symbolic != expected:
        raise AssertionError(f"symbolic shape must be (None, *{expected}). Received: {symbolic}")


def check_gradients(
    layer: keras.layers.Layer, arguments: tuple, keywords: dict, without: Sequence[str]
) -> None:
    """Every trainable weight receives a gradient."""
    variables = layer.trainable_variables
    if not variables:
        return
    with tf.GradientTape() as tape:
        outputs = leaves(run(layer, arguments, keywords, training=True))
        floating = [x for x in outputs if x.dtype.is_floating]
        total = tf.add_n([tf.reduce_sum(tf.cast(x, "float32") ** 2) for x in floating])
    gradients = tape.gradient(total, [v.value for v in variables])
    pairs = zip(variables, gradients, strict=True)
    lost = [v.path.removeprefix(f"{layer.name}/") for v, gradient in pairs if gradient is None]
    if sorted(lost) != sorted(without):
        raise AssertionError(f"weights without gradient must be {list(without)}. Received: {lost}")


def check_serialization(
    layer: keras.layers.Layer, arguments: tuple, keywords: dict, output: Any, package: str | None
) -> None:
    """The layer comes back from its serialized form and computes the same."""
    registered = keras.saving.get_registered_name(type(layer))
    if package is not None and registered != f"{package}>{type(layer).__name__}":
        raise AssertionError(f"the class must be registered in {package!r}. Received: {registered}")
    custom = None if package is not None else {type(layer).__name__: type(layer)}
    stored = keras.saving.serialize_keras_object(layer)
    again = keras.saving.deserialize_keras_object(stored, custom_objects=custom)
    if again.get_config() != layer.get_config():
        raise AssertionError(f"serialization changed {layer.get_config()} to {again.get_config()}")
    run(again, arguments, keywords)
    if variable_shapes(again) != variable_shapes(layer):
        raise AssertionError(f"serialization changed the weights to {variable_shapes(again)}")
    again.set_weights(layer.get_weights())
    check_close(run(again, arguments, keywords), output, 1e-6, "the layer read back")


def check_dtypes(
    layer: keras.layers.Layer,
    output: Any,
    policy_name: str,
    output_dtype: str | None,
    own_dtype: Sequence[str],
) -> None:
    """Weights, outputs and sublayers follow the dtype policy."""
    policy = keras.dtype_policies.get(policy_name)
    for sublayer in layer._flatten_layers(include_self=False):
        if sublayer.name not in own_dtype and sublayer.dtype_policy.name != policy_name:
            received = f"{sublayer.dtype_policy.name} in {sublayer.name!r}"
            raise AssertionError(f"sublayers must be {policy_name}. Received: {received}")
    own = {
        id(variable)
        for sublayer in layer._flatten_layers(include_self=False)
        if sublayer.name in own_dtype
        for variable in sublayer.weights
    }
    for variable in layer.weights:
        if id(variable) not in own and variable.dtype != policy.variable_dtype:
            received = f"{variable.dtype} in {variable.path}"
            raise AssertionError(f"weights must be {policy.variable_dtype}. Received: {received}")
    expected = output_dtype or policy.compute_dtype
    for tensor in leaves(output):
        if tensor.dtype.is_floating and tensor.dtype.name != expected:
            raise AssertionError(f"outputs must be {expected}. Received: {tensor.dtype.name}")


def check_close(
    output: Any, expected: Any, tolerance: float, what: str, least: float = 1.0
) -> None:
    """Arrays agree up to `tolerance` times the largest number expected, or times `least`.

    With `least` 0 each array must expect something else than zeros, which anything small is near.
    """
    for one, other in zip(leaves(output), leaves(expected), strict=True):
        one = np.asarray(tf.cast(one, "float64"))
        other = np.asarray(tf.cast(other, "float64"))
        if not np.isfinite(one).all():
            raise AssertionError(f"{what}: output must be finite. Received: {one}")
        scale = max(least, np.abs(other).max(initial=0.0))
        if scale == 0.0:
            raise AssertionError(f"{what}: there must be numbers to compare. Received: zeros")
        distance = np.abs(one - other).max(initial=0.0)
        if distance > tolerance * scale:
            message = f"differ by {distance:.3g}, more than {tolerance * scale:.3g}"
            raise AssertionError(f"{what}: results {message}")
