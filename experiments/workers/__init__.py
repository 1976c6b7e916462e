"""Trainers that run in a process of their own: other libraries, and whose memory is measured.

Started by :mod:`experiments.peers`, mostly by the interpreter of another environment: a module
imports NumPy, and what it trains with inside its functions.
"""
