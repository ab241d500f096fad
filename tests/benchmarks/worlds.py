"""The cost of a question of a world: simpy's own part, and ours. ``python -m tests.benchmarks.worlds``"""

import time

import numpy as np
import simpy

from onlinecal.engine import play
from onlinecal.forecasters import Calibeating, ForecastHedging, Unchanged
from onlinecal.worlds import Beds, Machines, Parts, Question, Queue, Simulation

QUESTIONS = 20_000


class Deaf:
    """A market that hears questions and says ½: what remains is the world's own cost."""

    horizon = QUESTIONS

    def __init__(self, env):
        self.env, self.asked, self.rng = env, 0, np.random.default_rng(0)

    def generator(self, *path):
        return np.random.default_rng(len(path[0]))

    def ask(self, **context):
        self.asked += 1
        return Question(play.Question(self.asked, self.env.now, forecast=0.5), self)

    def resolve(self, question, outcome):
        question._asked.resolved = True

    def deadline(self, question, delay, outcome):
        def come(_):
            question._asked.resolved = True

        simpy.Timeout(self.env, delay).callbacks.append(come)


def own_seconds(world):
    """Processor seconds of a question without a forecaster."""
    env = simpy.Environment()
    market = Deaf(env)
    env.process(world.run(env, market))
    began = time.process_time()
    while market.asked < QUESTIONS:
        env.step()
    return (time.process_time() - began) / QUESTIONS


def seconds(world, forecaster):
    """Processor seconds of a question with one."""
    simulation = Simulation(forecaster, world, horizon=QUESTIONS, runs=range(1))
    simulation.advance(10)
    began = time.process_time()
    simulation.advance(QUESTIONS)
    return (time.process_time() - began) / (QUESTIONS - 10)


def main():
    """Prints microseconds a question, and questions a second beside simpy."""
    print(f"{'world':10}{'forecaster':20}{'simpy µs':>10}{'all µs':>10}{'ours/s':>12}")
    for world in (Queue(), Beds(), Machines(), Parts()):
        own = own_seconds(world)
        for forecaster in (Unchanged(), ForecastHedging(), Calibeating()):
            each = seconds(world, forecaster)
            names = f"{type(world).__name__:10}{type(forecaster).__name__:20}"
            print(f"{names}{own * 1e6:10.1f}{each * 1e6:10.1f}{1.0 / (each - own):12,.0f}")


if __name__ == "__main__":
    main()
