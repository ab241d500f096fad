"""The walk of a newcomer: how many calls lie between `oc.play` and the loop of the game."""

import sys

import onlinecal as oc


def test_the_loop_is_five_calls_from_play():
    walk = []

    class Looks:
        def forecast(self):
            frame = sys._getframe(1)
            while not walk or walk[-1] != "play":
                walk.append(frame.f_code.co_name)
                frame = frame.f_back
            return 0.5

        def update(self, forecast, outcome): ...

    oc.play(Looks, "drift", horizon=[20], runs=1, measures="ece")
    assert len(walk) - 1 <= 5, walk
