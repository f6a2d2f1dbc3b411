"""Files and patterns of file names: the lowest room that touches the disk."""


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is that folder, which may be `/`, or lies in it; by their names, without a look at the disk."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
