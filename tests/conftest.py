import os

from hypothesis import settings

# A process has one server that forks others, whoever asks for it first, and its children learn
# from it how many threads add up their sums: last bits of a loss depend on that.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["DS_ACCELERATOR"] = "cpu"

# A busy machine is slow, and no test is about time: hypothesis' limit of 200 ms an example is off.
settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")
