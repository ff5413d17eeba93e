"""Named adapters of encoders: their settings, their weights, and what trains."""
