"""An audit as a timeline, in seconds on free cores, and what it takes on any number of workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

DRIVER, START, GROW, HERE, THREADS, PROCESSES, FRESH, BESIDE = (
    *("driver", "start", "grow", "here", "threads", "processes", "fresh", "beside"),
)


@dataclass(frozen=True)
class Segment:
    """What comes next: the driver works by itself, workers start, or tasks run, one call of a pool.

    `tasks` are seconds on a free core, in the order in which they are given (of a start: until a worker is ready);
    `driver_s` is what the driver spends beside each, or for each worker that starts; `serial` the part of a task for
    which a thread holds the GIL; `most` how many tasks run at once, where that is not the number of workers. Where a
    pool is to `GROW`, a worker starts with the first call that has a task for it. Tasks `HERE` run in the driver, those
    that are `FRESH` in processes of their own, and those `BESIDE` on workers, while the driver goes on.
    """

    where: str
    driver_s: float = 0.0
    tasks: tuple[float, ...] = ()
    serial: float = 0.0
    most: int = 0


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

    @classmethod
    def recorded(cls, rows: Iterable[list[Any]]) -> Timeline:
        """Of rows of a recording: where, seconds of the driver, of the tasks, the serial part, how many at once."""
        segments: list[Segment] = []
        hosts, start_s = 0, 0.0  # that fork fresh processes alone: the first tasks wait for them
        for where, own, tasks, serial, most in rows:
            kind = DRIVER if where == START and not tasks else where
            hosts += kind != where
            if where in (FRESH, BESIDE) and hosts and not start_s and len(tasks) >= hosts:
                usual = median(tasks[1:] or [0.0])
                start_s = (tasks[0] - usual) / hosts
                tasks[:hosts] = [start_s + usual] * hosts
            elif where == FRESH and most > hosts:
                tasks[hosts:most] = [start_s + each for each in tasks[hosts:most]]
                hosts = most
            if where == PROCESSES and len(segments) > 1 and segments[-2].where == START:
                segments[-2] = Segment(GROW, segments[-2].driver_s, segments[-2].tasks)
            segments.append(Segment(kind, sum(own) / max(1, len(tasks)), tuple(tasks), serial, most))
        return cls(tuple(segments))

    def replay(self, workers: int) -> Replay:
        """On so many workers, each task given to the first that has none, by a driver that does one thing at a time."""
        now = driver = idle = spawn_s = start_s = 0.0
        ready = [0.0] * workers  # when they are; shorter where workers start later
        for part in self.segments:
            began, own, spent = now, part.driver_s * max(1, len(part.tasks)), sum(part.tasks)
            at_once = max(1, min(workers, part.most or workers, len(part.tasks)))
            if part.where == GROW:
                spawn_s, start_s, ready = part.driver_s, spent, []
                continue
            if part.where == START:
                own = part.driver_s * workers
                ready = [now + own + spent] * workers
            if part.where in (DRIVER, START):
                now, driver, idle = now + own, driver + own, idle + own
                continue
            if part.where == BESIDE:
                driver += own
                for seconds in part.tasks:
                    place = ready.index(min(ready))
                    ready[place] = max(now, ready[place]) + seconds
                continue
            while part.where == PROCESSES and len(ready) < at_once:
                now, driver, idle = now + spawn_s, driver + spawn_s, idle + spawn_s
                ready.append(now + start_s)
            slower = at_once * shared(part.serial, at_once) if part.where == THREADS else 1.0
            free, hands = [now] * at_once, now
            for seconds in part.tasks:
                place = free.index(min(free))
                hands = max(hands, free[place]) + part.driver_s
                free[place] = max(hands, ready[place] if part.where == PROCESSES else 0.0) + seconds * slower
            now = min(max(free), began + own + spent) if part.where == THREADS else max(free)  # in turn at worst
            driver += own + spent * (part.where in (HERE, THREADS))
            idle += (now - began) * (part.where == HERE and workers > 1)
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
