"""Where backward induction cheats: conditionals that it chose differently in different contexts, and what for.

At the root, V is a sum over contexts of weights times what each summation chose. Holding the weights, the best
that ONE choice of a conditional can do is min_p p·G with G the weighted sum of its functions over all contexts;
the difference to what the separate choices did is its conflict. If none has a conflict, one precise network does
all that the induction did, and the bound is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.compute.bounds.outer import Induction, Message, Summation, Tape
from discreet.compute.bounds.problem import ConditionalSets, Floats, expect


@dataclass(frozen=True, slots=True)
class Conflicts:
    """For each node an array over (batch, conditionals): what their separate choices are worth; and common choices."""

    worth: tuple[Floats, ...]
    conditionals: tuple[Floats, ...]


def find_conflicts(
    induction: Induction,
    sets: Sequence[ConditionalSets],
    spread: Sequence[ConditionalSets | None],
    messages: dict[int, Message],
    tape: Tape,
) -> Conflicts:
    """Weigh every context by its share of V at the root, from the root back to the leaves."""
    problem = induction.problem
    base = len(problem.locals)
    count = max(len(record.low) for record in tape.values())
    weight: dict[int, Message] = {}
    whole: Floats = np.ones(count)  # of the signed function
    worth: dict[int, Floats] = {}
    common: dict[int, Floats] = {}
    for t in range(len(induction.summations) - 1, -1, -1):
        step, record, here = induction.summations[t], tape[t], spread[t]
        low, high = (whole, 0.0 * whole) if step.signed else weight.pop(base + t)
        shares = [low[..., None], high[..., None]]
        if here is not None and step.node is not None:
            contexts = tuple(k + 1 for k, size in enumerate(step.parents) if size == 1)
            slope = shares[0] * record.low
            least = low * record.made[0]
            if not step.signed:
                slope = slope + shares[1] * record.high
                least = least + high * record.made[1]
            slope = slope.sum(axis=contexts, keepdims=True)
            picked = here.choose(slope)
            worth[step.node] = (expect(picked, slope) - least.sum(axis=contexts, keepdims=True)).squeeze(
                contexts
            )
            common[step.node] = picked.squeeze(axis=contexts)
            # From here on the common choice counts: another one that is as good may lead to other contexts.
            shares = [(share * picked)[..., step.allowed] for share in shares]
        if not step.signed:
            _pass_down(induction, step, messages, shares[0], shares[1], weight)
            continue
        assert record.before is not None
        down = shares[0]
        if record.message is not None:
            pull = down * record.before
            _pass_down(induction, step, messages, np.maximum(pull, 0.0), np.minimum(pull, 0.0), weight)
            down = down * record.message
        k = step.inputs.index(induction.signed_key)
        whole = _gather(down, step.shapes[k])
    for i in induction.apart:
        worth[i], common[i] = _weigh_apart(induction, i, sets[i], weight[i], messages[i])
    found = []
    for i in range(base):
        picked, loss = common[i], worth[i]
        if i not in induction.apart:
            back = np.argsort(induction.parents_first(i))
            picked, loss = picked.transpose(back), loss.transpose(back[:-1])
        found.append((loss.reshape(count, -1), picked))
    return Conflicts(tuple(loss for loss, _ in found), tuple(picked for _, picked in found))


def _weigh_apart(
    induction: Induction, i: int, sets: ConditionalSets, weight: Message, message: Message
) -> tuple[Floats, Floats]:
    """The conflicts of conditionals that were taken apart: each level took its own end, in each context anew."""
    local = induction.problem.locals[i]
    back = np.argsort(induction.message_axes(i))
    low, high = (end.transpose(back) for end in weight)
    least = low * message[0].transpose(back) + high * message[1].transpose(back)
    slope = local.embed(low + high)
    picked = sets.choose(slope)
    chosen = least if local.observed else least.sum(axis=-1)
    return expect(picked, slope) - chosen, picked


def _pass_down(
    induction: Induction,
    step: Summation,
    messages: dict[int, Message],
    low: Floats,
    high: Floats,
    weight: dict[int, Message],
) -> None:
    """Share the weights of a product of messages out to its factors."""
    keys = [
        (key, shape)
        for key, shape in zip(step.inputs, step.shapes, strict=True)
        if key != induction.signed_key
    ]
    ends = [[end.reshape(len(end), *shape) for end in messages[key]] for key, shape in keys]
    for k, (key, shape) in enumerate(keys):
        shares = [low, high]
        for j, other in enumerate(ends):
            if j != k:
                shares = [share * end for share, end in zip(shares, other, strict=True)]
        weight[key] = (_gather(shares[0], shape), _gather(shares[1], shape))


def _gather(values: Floats, shape: Sequence[int]) -> Floats:
    """Sum over the axes that a factor lacks, and drop them."""
    lacking = tuple(k + 1 for k, size in enumerate(shape) if size == 1)
    return values.sum(axis=lacking) if lacking else values
