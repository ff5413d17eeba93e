"""Checkpoints: file formats of BERT <-> named NumPy arrays, independent of models.

`read_checkpoint.read_checkpoint` reads every format. TensorFlow is imported only by the readers of
TensorFlow's own files, when they are called.
"""
