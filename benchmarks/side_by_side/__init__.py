"""Contenders in processes of their own, taking turns; needs nothing but the standard library."""
