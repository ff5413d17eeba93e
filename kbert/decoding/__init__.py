"""Search for the best sequences of any step function, independent of models."""
