"""Metrics: thin faces of scikit-learn, SciPy, seqeval, sacreBLEU and the Model Garden."""
