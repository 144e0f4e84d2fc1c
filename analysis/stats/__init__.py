"""Statistics: arrays in, frozen results out. No Django, no frames, no clock; randomness only from a given
seed.
"""
