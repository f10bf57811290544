"""Faults that hit continuous queries under load.

Each fault ends with queries that run and numbers that flow; what is lost or doubled is looked for
afterwards.
"""

import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from .continuous_driver import (
    CLUSTER,
    KEEP_STOPPED_WORKERS,
    LOCAL,
    THREADS,
    ContinuousDriver,
    DriverSetup,
)
from .epoch_points import EpochPoint, LogOutage
from .ledger import SOURCE
from .numbers import RecordShape, SoakError
from .processes import kill, send_signal, session_of
from .stage import BROKERS, MAX_PARTITIONS, PARTITIONS, Stage
from .tracked_function import PACES
from .trap import Reaction

_OUTAGE_S: Final = 10.0
_BACKLOG_S: Final = 2.0
_MAX_PAUSE_S: Final = 2.0
_STOPPED_S: Final = 2.0
"""Less than the time after which a stopped task is replaced."""

_BACKLOG: Final = 400_000
"""How many numbers wait: so many that a response has more than some polls return."""

_RESPONSES: Final = (2, 3)
"""Of each partition until the backlog is read."""

_MAX_BEFORE_S: Final = 8.0
_SLOW_S: Final = 15.0
"""How long functions stay slow after a fault: other brokers answer while old responses wait."""

_REQUEST_TIMEOUT: Final = ("kafka.request.timeout.ms", "6000")
"""Brokers that are stopped must be left while the functions are slow."""

_POINTS: Final = (*EpochPoint, None)
_CONCURRENT: Final = "Concurrent update to the log"
_DATA_LOSS: Final = "KAFKA_DATA_LOSS"
_DATA_LOSS_WARNING: Final = "may have been lost"


def _told(point: EpochPoint | None) -> str:
    return point.value if point else "at any time"


Strike: TypeAlias = Callable[[Stage, random.Random], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, what its seed chooses, and what it may do to an at-least-once query."""

    name: str
    strike: Strike
    tasks_in: tuple[str, ...] = (LOCAL, THREADS)
    may_reorder: bool = False
    """Whether a task may write on beside its replacement, without transactions to forbid it."""

    may_repeat: bool = True
    """Whether at-least-once may repeat a record."""

    settings: tuple[tuple[str, str], ...] = ()
    """Of Spark."""

    is_under_load: bool = True
    """Whether numbers flow from its beginning to its end, and not only where it says so."""

    has_backlog: bool = False
    """Whether it begins with a backlog."""

    def run(self, stage: Stage, chance: random.Random) -> None:
        """Let it happen; numbers flow afterwards."""
        if self.has_backlog or not self.is_under_load:
            self.strike(stage, chance)
            return
        with stage.load():
            stage.await_flow()
            self.strike(stage, chance)
            stage.await_flow()


FAULTS: Final[list[Fault]] = []
"""All faults; a round has one of them."""


def fault(name: str, tasks_in: tuple[str, ...] = (LOCAL, THREADS), **rules: Any) -> Any:
    def add(strike: Strike) -> Strike:
        FAULTS.append(Fault(name, strike, tasks_in, **rules))
        return strike

    return add


# Processes


def kill_driver(point: EpochPoint | None) -> Strike:
    """Return a fault: the driver is killed at a point of an epoch, or at any time."""

    def strike(stage: Stage, chance: random.Random) -> None:
        stage.run_for(chance.uniform(0, _MAX_PAUSE_S))
        if point is None:
            stage.driver.kill()
        else:
            stage.driver.points.trap.arm(point)
            stage.await_event(stage.driver.has_ended, f"end of the driver {point.value}")
            stage.driver.kill()
        stage.note(f"driver {_told(point)}")
        _start_driver(stage, chance)

    return strike


FAULTS.extend(Fault(f"driver killed {_told(point)}", kill_driver(point)) for point in _POINTS)


@fault("starting driver killed")
def kill_starting_driver(stage: Stage, chance: random.Random) -> None:
    """A driver is killed in its first epoch, in which it recovers."""
    stage.kill_driver()
    driver = stage.new_driver()
    point = chance.choice(list(EpochPoint))
    driver.points.trap.arm(point)
    stage.start_driver(_setup(stage, chance), driver)
    stage.await_event(driver.has_ended, f"end of the driver {point.value}")
    driver.kill()
    stage.note(f"starting driver {point.value}")
    _start_driver(stage, chance)


@fault("driver stopped", may_repeat=False)
def stop_driver(stage: Stage, chance: random.Random) -> None:
    """The driver stops its queries in order, and another one continues."""
    stage.driver.request_stop()
    stage.await_event(stage.driver.has_ended, "end of the driver")
    if (status := stage.driver.wait(0)) != 0:
        raise SoakError(f"the driver stopped with {status}")
    stage.driver.kill()
    stage.note("driver stopped in order")
    _start_driver(stage, chance)


@fault("worker killed", (LOCAL,))
def kill_worker(stage: Stage, chance: random.Random) -> None:
    """Python workers are killed: one, or all at a point of an epoch."""
    stage.run_for(chance.uniform(0, _MAX_PAUSE_S))
    with _at(stage, chance.choice(_POINTS)) as point:
        workers = sorted(stage.driver.tasks())
        victims = workers if point else [chance.choice(workers)]
        for victim in victims:
            kill(victim)
        stage.note(f"{len(victims)} of {len(workers)} workers {_told(point)}")


@fault("executor killed", (CLUSTER,), may_reorder=True)
def kill_executor(stage: Stage, chance: random.Random) -> None:
    """An executor is killed, with the workers that are its children."""
    stage.run_for(chance.uniform(0, _MAX_PAUSE_S))
    with _at(stage, chance.choice(_POINTS)) as point:
        victim = chance.choice(stage.driver.executors())
        kill(victim.pid)
        stage.note(f"executor {_told(point)}")


@fault("stopped worker woken", (LOCAL,), may_reorder=True, settings=KEEP_STOPPED_WORKERS)
def wake_zombie(stage: Stage, chance: random.Random) -> None:
    """Each query's worker is stopped until it was replaced, and wakes again."""
    stage.run_for(chance.uniform(0, _MAX_PAUSE_S))
    tasks = stage.driver.tasks()
    zombies = [
        chance.choice(sorted(pid for pid, query in tasks.items() if query == name))
        for name in sorted(set(tasks.values()))
    ]
    with _stopped(zombies):
        stage.note(f"{len(zombies)} of {len(tasks)} workers stopped")
        stage.await_flow()
    stage.note("the stopped workers woke after their replacement")
    stage.await_event(
        lambda: not set(zombies) & set(stage.driver.tasks()), "end of the zombies", stage.keep
    )


# Brokers


@fault("broker killed")
def kill_broker(stage: Stage, chance: random.Random) -> None:
    _kill_broker(stage, chance, chance.randrange(BROKERS), "broker")


@fault("transaction coordinator moved")
def move_transaction_coordinator(stage: Stage, chance: random.Random) -> None:
    """The broker is killed that leads a partition of the topic of transactions."""
    _kill_leader(stage, chance, "__transaction_state")


@fault("group coordinator moved")
def move_group_coordinator(stage: Stage, chance: random.Random) -> None:
    """The broker is killed that leads a partition of the topic of groups."""
    _kill_leader(stage, chance, "__consumer_offsets")


def _kill_leader(stage: Stage, chance: random.Random, topic: str) -> None:
    partition = chance.randrange(BROKERS)
    broker = stage.leader_of(topic, partition)
    _kill_broker(stage, chance, broker, f"leader of {topic}-{partition}, broker")


def _kill_broker(stage: Stage, chance: random.Random, broker: int, what: str) -> None:
    stage.run_for(chance.uniform(0, _MAX_PAUSE_S))
    with _at(stage, chance.choice(_POINTS)) as point:
        stage.cluster.kill_broker(broker)
        stage.note(f"{what} {broker} {_told(point)}")
    stage.await_flow()
    stage.cluster.start_broker(broker)
    stage.note(f"broker {broker} is back")


# Brokers behind a backlog


def behind_backlog(strike_brokers: Strike) -> Strike:
    """Return a fault of brokers while slow functions work off records that were there before.

    Large responses wait in sockets, and undecoded in memory, when brokers end.
    """

    def strike(stage: Stage, chance: random.Random) -> None:
        stage.kill_driver()
        shape, begun = RecordShape.of_backlog(chance), stage.producer.count
        stage.producer.use(shape)
        size = stage.log_bytes()
        stage.producer.write_backlog(_BACKLOG)
        size = (stage.log_bytes() - size) // PARTITIONS // chance.choice(_RESPONSES)
        stage.note(f"{stage.producer.count - begun} numbers written: {shape}")
        driver, pace = stage.new_driver(), chance.choice(PACES)
        driver.pace.set(pace)
        source = (("kafka.max.partition.fetch.bytes", str(size)), _REQUEST_TIMEOUT)
        stage.start_driver(replace(_setup(stage, chance), source=source), driver)
        stage.note(f"driver started: {pace} records a second, fetches of {size} bytes")
        stage.await_event(
            lambda: driver.pace.slow == {query.name for query in stage.queries},
            "slow function of each query",
            stage.keep,
        )
        stage.run_for(chance.uniform(0, _MAX_BEFORE_S))
        try:
            strike_brokers(stage, chance)
        finally:
            driver.pace.clear()
        stage.flow()

    return strike


def kill_leader(stage: Stage, chance: random.Random) -> None:
    """Kill a leader; it is back when others have answered."""
    broker = _leader(stage, chance)
    stage.cluster.kill_broker(broker)
    stage.note(f"broker {broker} killed")
    _stay_slow(stage, broker)
    stage.cluster.start_broker(broker)
    stage.note(f"broker {broker} is back")


def suspend_leader(stage: Stage, chance: random.Random) -> None:
    """Stop a leader by a signal until others lead, and have answered."""
    broker = _leader(stage, chance)
    with _stopped([stage.cluster._process(broker).pid]):
        stage.note(f"broker {broker} stopped by a signal")
        _stay_slow(stage, broker)
    stage.note(f"broker {broker} resumes")


def roll_brokers(stage: Stage, chance: random.Random) -> None:
    """Shut all brokers down and start them again, one after another."""
    for broker in chance.sample(range(BROKERS), BROKERS):
        stage.cluster.stop_broker(broker)
        stage.note(f"broker {broker} shut down")
        stage.cluster.start_broker(broker)
        stage.note(f"broker {broker} is back")
        stage.keep()


def _leader(stage: Stage, chance: random.Random) -> int:
    return stage.leader_of(SOURCE, chance.randrange(PARTITIONS))


def _may_lead(stage: Stage, broker: int) -> bool:
    """Return whether a broker leads a partition, or another one does not answer in time."""
    partitions = range(stage.producer.partitions)
    try:
        return broker in {stage.leader_of(SOURCE, one, broker) for one in partitions}
    except OSError:
        return True


def _stay_slow(stage: Stage, broker: int) -> None:
    """Keep the functions slow until others lead for a while."""
    stage.await_event(lambda: not _may_lead(stage, broker), "election", stage.keep)
    stage.note("other brokers lead")
    stage.run_for(_SLOW_S)


FAULTS.extend(
    Fault(f"{name} behind a backlog", behind_backlog(strike), (THREADS,), has_backlog=True)
    for name, strike in (
        ("leader killed", kill_leader),
        ("leader suspended", suspend_leader),
        ("brokers rolled", roll_brokers),
    )
)

# Topics


@fault("partition added", may_repeat=False)
def add_partition(stage: Stage, chance: random.Random) -> None:  # noqa: ARG001  # as all faults
    total = stage.producer.partitions + 1
    if total <= MAX_PARTITIONS:
        stage.cluster.add_partitions(SOURCE, total)
        stage.producer.partitions = total
        stage.note(f"partition {total - 1} added")


@fault("topic created again", is_under_load=False)
def recreate_topic(stage: Stage, chance: random.Random) -> None:
    """The topic is deleted once all of its numbers are read, and created again."""
    stage.flow()
    stage.await_all()
    stage.cluster.delete_topic(SOURCE)
    stage.note("topic deleted")
    stage.run_for(chance.uniform(0, 2 * _MAX_PAUSE_S))
    stage.ledger.create_source_again(PARTITIONS)
    stage.note("topic created again")
    stage.flow()


@fault("retention overtakes readers", (LOCAL,), is_under_load=False)
def overtake_readers(stage: Stage, chance: random.Random) -> None:
    """Records are deleted before workers, which are stopped for a while, have read them."""
    stage.flow()
    with _stopped(sorted(stage.driver.tasks())):
        with stage.load():
            stage.run_for(_STOPPED_S)
        _delete_records(stage, chance)
    stage.flow()


@fault("retention overtakes the driver", is_under_load=False)
def overtake_driver(stage: Stage, chance: random.Random) -> None:
    _kill_with_backlog(stage)
    _delete_records(stage, chance)
    _start_behind_loss(stage, chance)


@fault("failOnDataLoss", is_under_load=False)
def fail_on_data_loss(stage: Stage, chance: random.Random) -> None:
    """Queries with ``failOnDataLoss`` fail after records were deleted; others continue."""
    _kill_with_backlog(stage)
    _delete_records(stage, chance)
    setup = replace(_setup(stage, chance), fails_on_data_loss=True)
    _await_errors(stage, stage.start_driver(setup), _DATA_LOSS)
    stage.note("all queries failed for the loss of data")
    _start_behind_loss(stage, chance)


def _kill_with_backlog(stage: Stage) -> None:
    with stage.load():
        stage.await_flow()
        stage.driver.kill()
        stage.note("driver at any time")
        stage.ledger.wait_for(lambda: False, _BACKLOG_S)


def _delete_records(stage: Stage, chance: random.Random) -> None:
    ends = stage.producer.ends()
    before = {
        partition: end - chance.randrange(1, 50) if end > 50 else end
        for partition, end in ends.items()
    }
    stage.cluster.delete_records(
        {(SOURCE, partition): offset for partition, offset in before.items()}
    )
    stage.producer.begin_at(before)
    stage.note("records deleted before the readers")


def _start_behind_loss(stage: Stage, chance: random.Random) -> None:
    """Start a driver, each of whose queries has to warn of the loss of data."""
    driver = _start_driver(stage, chance)
    stage.flow()
    stage.await_event(
        lambda: driver.log().count(_DATA_LOSS_WARNING) >= len(stage.queries),
        "warning of each query about the loss of data",
        stage.keep,
    )


# Drivers and logs


@fault("second driver", may_reorder=True)
def start_second_driver(stage: Stage, chance: random.Random) -> None:
    first = stage.driver
    _start_driver(stage, chance)
    stage.note("second driver")
    _await_errors(stage, first, _CONCURRENT)
    stage.note("the first driver has ended")


@fault("stopped driver woken", may_reorder=True)
def wake_driver(stage: Stage, chance: random.Random) -> None:
    """A driver and its tasks are stopped, and wake when another one has taken over."""
    first = stage.driver
    stage.run_for(chance.uniform(0, _MAX_PAUSE_S))
    with _stopped([process.pid for process in session_of(first.pid)]):
        stage.note("driver stopped with its tasks")
        _start_driver(stage, chance)
        stage.await_flow()
    stage.note("the stopped driver woke after its replacement")
    _await_errors(stage, first, _CONCURRENT)


def fail_logs(outage: LogOutage) -> Strike:
    """Return a fault: no log can be written for 10 s, and records still flow."""

    def strike(stage: Stage, chance: random.Random) -> None:
        stage.run_for(chance.uniform(0, _MAX_PAUSE_S))
        stage.driver.points.fail_logs(outage)
        stage.note(f"outage of the logs: {outage.value}")
        try:
            stage.run_for(_OUTAGE_S)
            stage.await_flow()
        finally:
            stage.driver.points.mend_logs()
        stage.note("the logs are back")
        stage.await_flow()
        # Records that flowed without the logs must be in them afterwards.
        stage.driver.points.trap.arm(EpochPoint.COMMITTED)
        stage.await_event(stage.driver.has_ended, "commit after the outage")
        stage.driver.kill()
        stage.note(f"driver {EpochPoint.COMMITTED.value}")
        _start_driver(stage, chance)

    return strike


FAULTS.extend(Fault(f"log {outage.name.lower()}", fail_logs(outage)) for outage in LogOutage)

# Shared


def _setup(stage: Stage, chance: random.Random) -> DriverSetup:
    return DriverSetup(chance.choice(stage.tasks_in))


def _start_driver(stage: Stage, chance: random.Random) -> ContinuousDriver:
    return stage.start_driver(_setup(stage, chance))


@contextmanager
def _at(stage: Stage, point: EpochPoint | None) -> Iterator[EpochPoint | None]:
    """Do something while a driver is at a point of an epoch."""
    if point is None:
        yield None
        return
    trap = stage.driver.points.trap
    trap.arm(point, Reaction.HOLD)
    try:
        stage.await_event(lambda: not trap.is_armed, f"epoch {point.value}", stage.keep)
        yield point
    finally:
        trap.release()


@contextmanager
def _stopped(processes: Sequence[int]) -> Iterator[None]:
    """Stop processes, and wake those again that live."""
    for process in processes:
        send_signal(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            send_signal(process, signal.SIGCONT)


def _await_errors(stage: Stage, driver: ContinuousDriver, words: str) -> None:
    """Wait for the end of a driver, all of whose queries fail with some words."""
    stage.await_event(driver.has_ended, f"end of the driver with {words}")
    errors = driver.errors()
    driver.kill()
    for query in stage.queries:
        if words not in errors.get(query.name, ""):
            raise SoakError(f"{query.name} ended with {errors.get(query.name)!r}, not with {words}")
