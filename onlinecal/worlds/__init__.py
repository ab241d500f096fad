"""Worlds: simulated systems on simpy. To add one: write its specification in a file of its own, and list it here."""

from onlinecal.core.strategy import registry
from onlinecal.worlds.base import Simulated, World, as_world
from onlinecal.worlds.beds import Beds
from onlinecal.worlds.machines import Machines
from onlinecal.worlds.market import Market, Question
from onlinecal.worlds.parts import Parts
from onlinecal.worlds.queue import Queue
from onlinecal.worlds.run import Simulation, observe

WORLDS = registry((Queue, Beds, Machines, Parts))

__all__ = [
    "WORLDS", "Beds", "Machines", "Market", "Parts", "Question", "Queue", "Simulated", "Simulation", "World",
    "as_world", "observe",
]  # fmt: skip
