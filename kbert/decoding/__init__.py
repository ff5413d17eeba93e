"""Search for the best sequences of any step function; knows no model."""
