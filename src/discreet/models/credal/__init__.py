"""Credal networks: rows known within intervals, made from counts, around a network, or from noisy measurements."""

from discreet.models.credal.document import read_credal, write_credal
from discreet.models.credal.interval import Decision, Interval
from discreet.models.credal.makers import contaminate, idm
from discreet.models.credal.network import CredalNetwork
from discreet.models.credal.noise import from_noise
from discreet.models.credal.posterior import Calibrated, calibrated

__all__ = [
    "Calibrated",
    "CredalNetwork",
    "Decision",
    "Interval",
    "calibrated",
    "contaminate",
    "from_noise",
    "idm",
    "read_credal",
    "write_credal",
]
