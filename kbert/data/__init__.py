"""Readers of labelled text: files of examples, GLUE, TFDS and multiple choice."""
