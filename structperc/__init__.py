"""structperc."""
