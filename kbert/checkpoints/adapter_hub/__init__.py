"""Folders of AdapterHub's library `adapters` -> named adapters; read without PyTorch."""
