"""Shell source: what is written in it, and what is known of the programs that it names. Nothing is run here."""
