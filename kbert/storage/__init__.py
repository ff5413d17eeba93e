"""Storage: how files and folders are written, whole or not at all, and checked."""
