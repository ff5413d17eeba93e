"""Raw strings in, answers out: the Keras models that people hold."""
