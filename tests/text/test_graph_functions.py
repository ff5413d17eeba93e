import tensorflow as tf

from kbert.text.graph_functions import cached_graph


class Doubling:
    """Counts how often its function is run as Python."""

    def __init__(self):
        self.times, self.runs = 2, 0

    def more(self, x):
        self.runs += 1
        return {"more": x * self.times}

    def less(self, x):
        return {"less": x / self.times}


def test_a_function_is_traced_once_until_a_setting_changes():
    model, specs = Doubling(), [tf.TensorSpec((None,), tf.float32)]
    graph = cached_graph(model, model.more, [model.times], specs)
    for values in ([1.0], [1.0, 2.0]):
        assert graph(tf.constant(values))["more"].numpy().tolist() == [2 * v for v in values]
    assert model.runs == 1 and cached_graph(model, model.more, [model.times], specs) is graph
    model.times = 3
    again = cached_graph(model, model.more, [model.times], specs)
    assert again(tf.constant([1.0]))["more"].numpy() == 3
    assert model.runs == 2


def test_functions_and_models_have_graphs_of_their_own():
    model, specs = Doubling(), [tf.TensorSpec((None,), tf.float32)]
    graph = cached_graph(model, model.more, (), specs)
    assert cached_graph(model, model.less, (), specs)(tf.constant([4.0]))["less"].numpy() == 2
    assert cached_graph(model, model.more, (), specs) is graph
    other = Doubling()
    assert cached_graph(other, other.more, (), specs) is not graph
