"""Choosing among settings on private rows, and paying for it.

:func:`select` trains a secret, random number of models, each with settings drawn at random, and
keeps the one with the best noisy score on rows that no training saw. What that costs is little more
than one training (``docs/howto/selection.md``, proof in ``docs/proofs/selection.md``).
"""
