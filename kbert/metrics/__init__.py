"""Metrics: thin wrappers of scikit-learn, SciPy, seqeval, sacreBLEU and the Model Garden."""
