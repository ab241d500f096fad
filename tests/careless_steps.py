"""Steps with one mistake each, in round 3 or as their state says."""

from onlinecal.rounds.steps import (
    floats,
    hear,
    ints,
    law,
    law_atoms,
    law_values,
    law_weights,
    learn,
    move,
    reveal,
    scratch,
)


@law
def within(run, number):
    """Numba would take it in, and leave out the law as if nothing looked at it."""
    halves = [0.5 for _ in range(2)]
    law_values(run)[0], law_weights(run)[0] = halves[0], 1.0
    return 1


@law
def fair(run, number):
    law_values(run)[0], law_weights(run)[0] = 0.5, 1.0
    return 1


@law
def law_raises(run, number):
    law_values(run)[0], law_weights(run)[0] = 0.5, 1.0
    if number == 3:
        raise ValueError("boom")
    return 1


@law
def beyond(run, number):
    law_values(run)[0], law_weights(run)[0] = 0.5, 1.0
    if number == 3:
        scratch(run)[5] = 1.0
    return 1


@learn
def learn_raises(run, number, size, drawn, outcome):
    assert number != 3
    return 0


@move
def coin(run, number, size, forecast):
    return 0.5


@move
def move_raises(run, number, size, forecast):
    if number == 3:
        raise ValueError("boom")
    return 0.5


@hear
def hear_raises(run, number, size, forecast, outcome):
    if number == 3:
        raise ValueError("boom")
    return 0


@reveal
def reveal_raises(run, number):
    if number == 3:
        raise ValueError("boom")
    return 0


@law
def state(run, number):
    """From round 3 on the value, weight and size of the state."""
    value, weight, size = floats(run)
    law_values(run)[0], law_weights(run)[0] = (0.5, 1.0) if number < 3 else (value, weight)
    return 1 if number < 3 else int(size)


@law
def state_on_grid(run, number):
    value, weight, size = floats(run)
    law_atoms(run)[0], law_weights(run)[0] = (1, 1.0) if number < 3 else (int(value), weight)
    return 1 if number < 3 else int(size)


@learn
def refuses_at(run, number, size, drawn, outcome):
    return -1 if number == ints(run)[0] else 0


@hear
def deaf(run, number, size, forecast, outcome):
    return -1 if number == 3 else 0


@move
def asks(run, number, size, forecast):
    return floats(run)[0] if number == 6 else 0.5
