"""Credal networks: rows known within intervals, made from counts, around a network, or from noisy measurements."""

from discreet.networks.credal.calibrated import Calibrated, calibrated
from discreet.networks.credal.document import read_credal, write_credal
from discreet.networks.credal.guaranteed import from_noise
from discreet.networks.credal.interval import Decision, Interval
from discreet.networks.credal.makers import contaminate, idm
from discreet.networks.credal.network import CredalNetwork

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
