import errno
import json
import resource

import keras
import numpy as np
import pytest

from kbert.training.runs.train_state import (
    Position,
    initial_weights,
    load_state,
    save_state,
)


def dense(inputs=40, units=9, optimizer="sgd"):
    """A model with the variables of its optimizer, as after a step."""
    layer = keras.layers.Dense(units, use_bias=False, name="dense")
    model = keras.Sequential([keras.Input((inputs,)), layer])
    model.compile(optimizer, "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def test_a_damaged_state_is_left_for_the_one_before(tmp_path, caplog):
    model = dense(optimizer="adam")
    assert load_state(tmp_path, model) is None
    save_state(tmp_path, model, Position(1, 0, 1))
    newest = save_state(tmp_path, model, Position(2, 0, 2))
    file = newest / "variables.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    assert load_state(tmp_path, model) == Position(1, 0, 1)
    assert "step-000000002 is damaged and not used" in caplog.text


def damage(state):
    file = state / "variables.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"x")


def test_a_damaged_state_takes_no_place_of_a_whole_one(tmp_path):
    model = dense(2, 3)
    for step in (20, 30):
        state = save_state(tmp_path, model, Position(step), keep=2)
    damage(state)
    assert load_state(tmp_path, model) == Position(20)
    newest = save_state(tmp_path, model, Position(40), keep=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000000020", "step-000000040"]
    damage(newest)
    assert load_state(tmp_path, model) == Position(20)


def test_it_is_told_where_no_whole_state_is_left(tmp_path, caplog):
    model = dense(2, 3)
    assert load_state(tmp_path, model) is None and not caplog.text
    damage(save_state(tmp_path, model, Position(20)))
    assert load_state(tmp_path, model) is None
    assert "no whole state is left in" in caplog.text and "begins anew" in caplog.text


def test_a_state_of_other_shapes_is_refused(tmp_path):
    """With as many numbers: kernels of (2, 3) and (3, 2), without biases."""
    save_state(tmp_path, dense(2, 3), Position(1))
    with pytest.raises(ValueError, match=r"kernel of shape \(2, 3\), not \(3, 2\)"):
        load_state(tmp_path, dense(3, 2))


def test_only_the_newest_states_stay(tmp_path):
    model = dense(optimizer="adam")
    for step in range(1, 5):
        save_state(tmp_path, model, Position(step, 0, step))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000000003", "step-000000004"]
    about = json.loads((tmp_path / "step-000000004" / "state.json").read_text())
    assert (about["step"], about["epoch"], about["batch"]) == (4, 0, 4)


def test_a_state_of_another_model_is_refused(tmp_path):
    model = dense(optimizer="adam")
    save_state(tmp_path, model, Position(1, 0, 1))
    model.compile(optimizer=keras.optimizers.SGD(0.01))
    with pytest.raises(ValueError, match="must be of the same model. Received: "):
        load_state(tmp_path, model)


def test_a_state_tells_what_was_measured_and_notices_a_change_of_it(tmp_path, caplog):
    model = dense(optimizer="adam")
    position = Position(7, 2, 1, {"example": 3}, {"best_value": 0.5})
    state = save_state(tmp_path, model, position)
    assert load_state(tmp_path, model) == position
    about = state / "state.json"
    about.write_text(about.read_text().replace('"step": 7', '"step": 6'))
    assert load_state(tmp_path, model) is None
    assert "must have the checksum that it tells" in caplog.text


@pytest.mark.parametrize("name", ["state.json", "variables.safetensors"])
def test_half_a_file_is_no_state(name, tmp_path, caplog):
    model = dense(optimizer="adam")
    save_state(tmp_path, model, Position(1, 0, 1))
    file = save_state(tmp_path, model, Position(2, 0, 2)) / name
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert load_state(tmp_path, model) == Position(1, 0, 1)
    save_state(tmp_path, model, Position(2, 0, 2))
    assert load_state(tmp_path, model) == Position(2, 0, 2)


def test_where_there_is_no_room_the_last_state_stands(tmp_path):
    """A limit of the size of files stands for a full disk."""
    model = dense(optimizer="adam")
    save_state(tmp_path, model, Position(1, 0, 1))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.raises(OSError) as raised:
            save_state(tmp_path, model, Position(2, 0, 2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.errno == errno.EFBIG
    assert [p.name for p in tmp_path.iterdir()] == ["step-000000001"]
    assert load_state(tmp_path, model) == Position(1, 0, 1)


def test_weights_that_are_no_numbers_are_not_saved(tmp_path):
    model = dense(optimizer="adam")
    weight = model.trainable_variables[0]
    weight.assign(np.full(weight.shape, np.inf, "float32"))
    with pytest.raises(FloatingPointError, match="NaN or infinity in model/.* after step 3, which"):
        save_state(tmp_path, model, Position(3, 1, 0))
    assert load_state(tmp_path, model) is None


def test_a_run_goes_on_with_the_weights_that_it_began_with(tmp_path):
    model = dense()
    entry = initial_weights(None, network=model, bert=None)
    assert list(entry) == ["weights"] and list(entry["weights"]) == ["network"]
    assert initial_weights(None, bert=None) == {}
    assert initial_weights(tmp_path, network=model) == entry  # stopped before its report
    report = tmp_path / "report.json"
    report.write_text(json.dumps(entry))
    both = initial_weights(tmp_path, network=model, bert=dense(2))["weights"]
    assert list(both) == ["network", "bert"] and both["network"] == entry["weights"]["network"]
    with pytest.raises(ValueError) as caught:
        initial_weights(tmp_path, network=dense())
    assert str(caught.value) == (
        f"`network` must have the weights that the run in {tmp_path} began with, even with "
        "allow_config_change. Received: others. Put the former files back, or set overwrite "
        "(--overwrite) to start anew"
    )
    report.write_text("{}")  # of a run before there were such hashes
    assert initial_weights(tmp_path, network=dense()) != entry
