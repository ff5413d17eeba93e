"""Metrics by scikit-learn, SciPy, seqeval, sacreBLEU, TensorFlow Text and the Model Garden."""
