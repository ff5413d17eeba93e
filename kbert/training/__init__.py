"""Training: a configuration goes in, a finished run directory comes out."""
