"""Views of `cru.oil` on the terminal."""
