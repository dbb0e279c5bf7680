"""Which window is trained on at which position: a pure function of the seed."""
