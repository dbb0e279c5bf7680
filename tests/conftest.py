from hypothesis import settings

# A busy machine is slow, and no test is about time: hypothesis' limit of 200 ms an example is off.
settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")
