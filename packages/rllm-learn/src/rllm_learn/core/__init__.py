"""The learner's core: plain token records in, new weights out. Imports torch, peft, transformers.

It knows neither agents nor environments nor Ray, so that it can be read, tested and reused alone.
"""
