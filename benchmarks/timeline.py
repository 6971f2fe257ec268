"""An audit as a timeline, in seconds on free cores, and what it takes on any number of workers."""

from __future__ import annotations

from dataclasses import dataclass

DRIVER, START, HERE, THREADS, PROCESSES, FRESH = "driver", "start", "here", "threads", "processes", "fresh"


@dataclass(frozen=True)
class Segment:
    """What comes next: the driver works by itself, all workers start, or tasks run, one call of a pool.

    `tasks` are seconds on a free core, in the order in which they are given (of a start: until a worker is ready);
    `driver_s` is what the driver spends beside each, or for each worker that starts; `serial` the part of a task for
    which a thread holds the GIL. Tasks `HERE` run in the driver, those that are `FRESH` in processes of their own.
    """

    where: str
    driver_s: float = 0.0
    tasks: tuple[float, ...] = ()
    serial: float = 0.0


@dataclass(frozen=True)
class Replay:
    """Seconds: from begin to end, of the driver's CPU, and those in which no worker runs or starts."""

    wall_s: float
    driver_s: float
    idle_s: float


@dataclass(frozen=True)
class Timeline:
    """Segments, one after the other: nothing of one begins before all of the one before it is done."""

    segments: tuple[Segment, ...]

    def replay(self, workers: int) -> Replay:
        """On so many workers, each task given to the first that is free, by a driver that does one thing at a time."""
        now = driver = idle = 0.0
        ready = [0.0] * workers
        for part in self.segments:
            began, at_once = now, 1 if part.where == HERE else max(1, min(workers, len(part.tasks)))
            if part.where in (DRIVER, START):
                now += part.driver_s * (workers if part.where == START else 1)
                ready = [now + sum(part.tasks)] * workers if part.where == START else ready
                driver += now - began
            else:
                slower = at_once * shared(part.serial, at_once) if part.where == THREADS else 1.0
                free, hands = [max(now, each) if part.where == PROCESSES else now for each in ready][:at_once], now
                for seconds in part.tasks:
                    place = free.index(min(free))
                    hands = max(hands, free[place]) + part.driver_s
                    free[place] = hands + seconds * slower
                own, spent = part.driver_s * len(part.tasks), sum(part.tasks)
                now = min(max(free), began + own + spent) if part.where == THREADS else max(free)  # in turn at worst
                driver += own + spent * (part.where in (HERE, THREADS))
            if part.where in (DRIVER, START) or (part.where == HERE and workers > 1):
                idle += now - began
        return Replay(now, driver, idle)


def shared(serial: float, threads: int) -> float:
    """The time of equal work on so many threads, of that on one, where `serial` of it needs the one GIL there is.

    By the mean values of a closed network with one server: on two threads (1 + serial ** 2) / 2.
    """
    queue, rate = 0.0, 1.0
    for number in range(1, threads + 1):
        held = serial * (1.0 + queue)
        rate = number / (1.0 - serial + held)
        queue = rate * held
    return 1.0 / rate
