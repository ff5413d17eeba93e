"""Raw strings in, answers out: bases of the Keras models that users hold."""
