"""cru's own hooks: every event of the catalog, flat entries, answers in our own words."""
