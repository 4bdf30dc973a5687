"""The learners by name: `discreet.learn.planned(airlock, dag, spend="1")`; each is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.learning.learner import HOMES, find_learner

if TYPE_CHECKING:
    from discreet.learning.adaptive import adaptive
    from discreet.learning.plan import plan
    from discreet.learning.planned import planned
    from discreet.learning.privbayes import privbayes
    from discreet.papers.parameters.dependent import dependent
    from discreet.papers.parameters.independent import independent

__all__ = ["adaptive", "dependent", "independent", "plan", "planned", "privbayes"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "plan":
            from discreet.learning.plan import plan

            return plan
        if name not in __all__ or name not in HOMES:
            raise AttributeError(f"no learner {name!r}; there are {', '.join(__all__)}")
        return find_learner(name)
