"""kbert's side of the comparisons, and the limit of the machine as TensorFlow reaches it."""
