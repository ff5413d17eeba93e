"""The command line: `kbert` and its verbs."""
