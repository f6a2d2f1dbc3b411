"""Places: where links of the home lead, what git of a repository runs, and how paths and URLs are compared."""
