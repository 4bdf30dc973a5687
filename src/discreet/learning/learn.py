"""The learners by name: `discreet.learn.planned(airlock, dag, spend="1")`; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.learning.adaptive import adaptive
    from discreet.learning.dependent import dependent
    from discreet.learning.independent import independent
    from discreet.learning.plan import plan
    from discreet.learning.planned import planned
    from discreet.learning.privbayes import privbayes

__all__ = ["adaptive", "dependent", "independent", "plan", "planned", "privbayes"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"no learner {name!r}; there are {', '.join(__all__)}")
        return getattr(import_module(f"discreet.learning.{name}"), name)
