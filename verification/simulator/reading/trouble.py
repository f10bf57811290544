"""The faults of the cluster and its network."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ..engine.decisions import Fired, Numbers
from .cluster import Member
from .faults import EVENTS, Fault
from .logs import Partition, Replica
from .world import BOOTSTRAP, DEAD_HOST, World

ME: Final = "cluster"


class Trouble:
    """Lets records be written, and things go wrong, and sets all right in the end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._generation = 0
        self._zombies: list[Member] = []
        self._laggards: list[Replica] = []
        self._is_replaced = not world.settings.is_replaced
        world.on_complete = self._ask_for_more
        self._numbers = Numbers(world.settings.seed, ME)
        self._actions: dict[Fault, Callable[[Fired], None]] = {
            Fault.BLACK_HOLE: self._black_hole,
            Fault.UNKNOWN_NAME: self._unknown_name,
            Fault.ELECTION: self._elect,
            Fault.UNCLEAN: self._elect_uncleanly,
            Fault.CUT_OFF: self._cut_off,
            Fault.DIES: lambda fired: self._end(self._member(fired), fired),
            Fault.MOVES: self._move,
            Fault.BEHIND: self._fall_behind,
            Fault.RETENTION: self._delete_records,
            Fault.RECREATED: self._recreate,
        }
        self._plan()

    def _plan(self) -> None:
        world, settings = self._world, self._world.settings
        if dead := world.decisions.has(ME, Fault.DEAD_ADDRESS, 1):
            self._add_dead_address(dead)
        if settings.session_ms and settings.refuses_ms:
            at_ms = world.decisions.between("logins", 0, settings.faults_ms)
            world.scheduler.at(at_ms, self._refuse_logins)
        for partition in world.cluster.all_partitions():
            self._write_first(partition)
        for count in range(settings.batches):
            at_ms = settings.faults_ms * count // settings.batches
            world.scheduler.at(at_ms + self._numbers.between(0, 200), self._write_everywhere)
        kinds = [each for each in EVENTS if each in settings.kinds]
        for number in range(settings.events if kinds else 0):
            kind = kinds[self._numbers.between(0, len(kinds) - 1)]
            at_ms = self._numbers.between(1, settings.faults_ms)
            if fired := world.decisions.has(f"event {number}", kind, 1):
                world.scheduler.at(at_ms, partial(self._act, kind, fired))
        world.scheduler.at(settings.faults_ms, self._calm)

    def _act(self, kind: Fault, fired: Fired) -> None:
        if not self._world.decisions.is_quiet:
            self._actions[kind](fired)

    def _write_first(self, partition: Partition) -> None:
        for _ in range(self._numbers.between(0, 4)):
            self._world.cluster.write(partition)

    def _write_everywhere(self) -> None:
        for partition in self._world.cluster.all_partitions():
            self._world.cluster.write(partition)

    def _calm(self) -> None:
        """Set everything right that is not for good."""
        world, cluster = self._world, self._world.cluster
        world.decisions.is_quiet = True
        world.cluster.refuses_logins = False
        world.name_brokers()
        world.network.restore(*(each.host for each in cluster.members))
        for member in cluster.members:
            member.is_cut_off = member.is_cut_off and self._may_stay_away(member)
            if not member.is_alive:
                self._start(member)
        for partition in cluster.all_partitions():
            for replica in partition.replicas.values():
                replica.is_behind = replica in self._laggards and replica.is_behind
            self._give_leader(partition)
        cluster.publish()
        world.scheduler.at(100, self._end_writing)
        world.tell(ME, "end of faults", "", None)

    def _may_stay_away(self, member: Member) -> bool:
        """Return whether a broker may answer for ever what was true before it was cut off.

        Not if it is needed, or knows no other broker where it is: no client would leave it. Nor if
        it knows an older topic and there is one other broker: either may be the one that lags. Nor
        if each task of a batch begins there, or of a stream that reads the older topic, as the
        first address of the bootstrap servers.
        """
        cluster = self._world.cluster
        partitions = cluster.all_partitions()
        addresses = {(each.advertised, each.port) for each in cluster.members}
        addresses.discard((member.advertised, member.port))
        knows_another = any((node.host, node.port) in addresses for node in member.view.nodes)
        is_needed = any(each.last_leader == member.number for each in partitions)
        knows_topics = all(
            cluster.topics[name][0].topic_id == topic_id
            for name, topic_id in member.view.ids.items()
        )
        has_witnesses = len(cluster.members) > 2 or knows_topics
        begins_there = not (self._world.settings.is_stream and knows_topics)
        is_first = begins_there and member is cluster.members[0]
        may_stay = knows_another and has_witnesses and not (is_needed or is_first)
        return member in self._zombies and may_stay

    def _end_writing(self) -> None:
        world = self._world
        for partition in world.cluster.all_partitions():
            world.cluster.write(partition)
            world.cluster.end_transactions(partition)
        world.calm_since_ms = world.now_ms

    def _give_leader(self, partition: Partition) -> None:
        if partition.leader < 0:
            self._world.cluster.appoint_last(partition)

    # When everything is read

    def _ask_for_more(self) -> bool:
        """Replace all brokers in good order, once, and let records be written to the others."""
        world = self._world
        # A reader of ranges does not try a login that was refused again for five minutes.
        may_not_log_in = world.network.client.was_refused and not world.settings.is_stream
        if self._is_replaced or may_not_log_in:
            return True
        self._is_replaced = world.is_peaceful = True
        world.calm_since_ms = None
        if not (world.settings.rack or world.settings.session_ms):
            # Each broker may be connected to for data and for metadata, before and after.
            world.network.client.most_connections = 4 * world.settings.brokers + 4
        world.scheduler.at(self._numbers.between(1, 10_000), self._begin_to_replace)
        return False

    def _begin_to_replace(self) -> None:
        """Replace all brokers at once, or half of them first.

        A stream learns of the first half, also if the bootstrap servers are gone for good.
        """
        world, settings = self._world, self._world.settings
        self._generation += 1
        half = list(world.cluster.members)
        if settings.is_stream and settings.brokers > 2 and self._numbers.between(0, 1):
            half = half[: settings.brokers // 2]
            world.has_bootstrap = False
            for member in world.cluster.members:
                # Who asks a broker that is cut off last knows only addresses of brokers that moved.
                member.is_cut_off = False
        rest = [each for each in world.cluster.members if each not in half]
        # Before each half, metadata become so old that they are requested again.
        pause_ms = 2 * settings.metadata_age_ms + 2_000 if rest else 0
        world.scheduler.at(pause_ms, lambda: self._replace(half))
        world.scheduler.at(2 * pause_ms, lambda: self._replace(rest))
        world.scheduler.at(2 * pause_ms + 100, self._end_writing)

    def _replace(self, members: Sequence[Member]) -> None:
        world = self._world
        for member in members:
            world.brokers[member.number].end(Fired(Fault.DIES, self._numbers))
            member.host = f"10.{self._generation}.0.{member.number + 1}"
            member.is_cut_off = False
            world.brokers[member.number].listen()
            world.tell(ME, "broker", member.number, Fault.MOVES.value)
        world.name_brokers()
        for partition in world.cluster.all_partitions():
            world.cluster.elect(partition)

    # Brokers and their network

    def _member(self, fired: Fired) -> Member:
        members = self._world.cluster.members
        return members[fired.between(0, len(members) - 1)]

    def _later(self, fired: Fired, action: Callable[[], None], least_ms: int = 200) -> None:
        """Do something later, unless faults end before."""

        def act() -> None:
            if not self._world.decisions.is_quiet:
                action()

        self._world.scheduler.at(fired.between(least_ms, 8_000), act)

    def _refuse_logins(self) -> None:
        world = self._world
        if not world.decisions.is_quiet:
            world.cluster.refuses_logins = True
            world.tell(ME, "brokers", "all", "refuse logins")
            world.scheduler.at(world.settings.refuses_ms, self._accept_logins)

    def _accept_logins(self) -> None:
        self._world.cluster.refuses_logins = False

    def _black_hole(self, fired: Fired) -> None:
        member, network = self._member(fired), self._world.network
        host = member.host
        network.silence(host)
        member.is_cut_off = True
        self._world.tell(ME, "broker", member.number, Fault.BLACK_HOLE.value)
        self._elect_others(member)

        def end() -> None:
            network.restore(host)
            self._connect(member)

        self._later(fired, end)

    def _unknown_name(self, fired: Fired) -> None:
        world = self._world
        world.network.names.update({name: [] for name in world.network.names})
        world.tell(ME, BOOTSTRAP, "", Fault.UNKNOWN_NAME.value)
        self._later(fired, world.name_brokers)

    def _add_dead_address(self, fired: Fired) -> None:
        """Let nobody answer at one address of each name: it refuses, or swallows packets."""
        if fired.between(0, 1):
            self._world.network.silence(DEAD_HOST)
        self._world.dead_place = fired.between(0, len(self._world.cluster.members))
        self._world.name_brokers()

    def _cut_off(self, fired: Fired) -> None:
        member = self._member(fired)
        member.is_cut_off = True
        self._world.tell(ME, "broker", member.number, Fault.CUT_OFF.value)
        self._elect_others(member)
        if fired.between(0, 1) and not self._zombies:
            self._zombies.append(member)
        else:
            self._later(fired, lambda: self._connect(member), 2_000)

    def _connect(self, member: Member) -> None:
        member.is_cut_off = False
        self._world.cluster.return_leader(member)

    def _end(self, member: Member, fired: Fired, host: str | None = None) -> None:
        if not member.is_alive:
            return
        world = self._world
        member.is_alive = False
        world.brokers[member.number].end(fired)
        world.tell(ME, "broker", member.number, Fault.DIES.value)
        self._elect_others(member)
        self._later(fired, lambda: self._start(member, host))

    def _start(self, member: Member, host: str | None = None) -> None:
        if member.is_alive:
            return
        member.is_alive = True
        if host is not None:
            member.host = host
            self._world.name_brokers()
        self._world.brokers[member.number].listen()
        self._world.tell(ME, "broker", member.number, f"starts at {member.host}")
        self._world.cluster.return_leader(member)

    def _move(self, fired: Fired) -> None:
        """Let a broker, or all of them, start again with another address."""
        members = self._world.cluster.members
        moved = members if fired.between(0, 1) else [self._member(fired)]
        self._generation += 1
        for member in list(moved):
            self._end(member, fired, f"10.{self._generation}.0.{member.number + 1}")

    def _elect_others(self, member: Member) -> None:
        for partition in self._world.cluster.all_partitions():
            if partition.leader == member.number:
                self._world.cluster.elect(partition)

    # Partitions

    def _partition(self, fired: Fired) -> Partition:
        partitions = self._world.cluster.all_partitions()
        return partitions[fired.between(0, len(partitions) - 1)]

    def _elect(self, fired: Fired) -> None:
        partition = self._partition(fired)
        self._world.cluster.elect(partition)
        self._tell(partition, f"broker {partition.leader} in epoch {partition.epoch}")

    def _elect_uncleanly(self, fired: Fired) -> None:
        partition = self._partition(fired)
        if self._world.cluster.elect_uncleanly(partition):
            end = partition.divergences[-1]
            self._tell(
                partition,
                f"broker {partition.leader} in epoch {partition.epoch}, whose log ends at {end}",
            )

    def _fall_behind(self, fired: Fired) -> None:
        partition = self._partition(fired)
        others = [
            each
            for each in partition.replicas.values()
            if each.node != partition.leader and self._world.cluster.copies(each, partition)
        ]
        if not others:
            return
        replica = others[fired.between(0, len(others) - 1)]
        replica.is_behind = True
        partition.in_sync = [each for each in partition.in_sync if each != replica.node]
        # It has lost its disk, or the end of its log.
        replica.truncate(fired.between(0, replica.end))
        self._world.tell(ME, f"broker {replica.node}", partition.name, Fault.BEHIND.value)

        def catch_up() -> None:
            replica.is_behind = False
            self._world.cluster.replicate(partition)

        if fired.between(0, 1):
            self._laggards.append(replica)
        else:
            self._later(fired, catch_up)

    def _delete_records(self, fired: Fired) -> None:
        partition = self._partition(fired)
        log = partition.log
        log.start = fired.between(log.start, log.high_watermark)
        self._world.cluster.replicate(partition)
        self._tell(partition, f"begins at {log.start}")

    def _recreate(self, fired: Fired) -> None:
        cluster = self._world.cluster
        if not cluster.has_ids:
            return
        names = sorted(cluster.topics)
        name = names[fired.between(0, len(names) - 1)]
        count = max(1, len(cluster.topics[name]) + fired.between(-1, 1))
        cluster.delete(name)
        cluster.create(name, count)
        self._world.tell(ME, name, f"{count} partitions", Fault.RECREATED.value)
        for partition in cluster.topics[name]:
            self._write_first(partition)
        cluster.publish()

    def _tell(self, partition: Partition, outcome: str) -> None:
        self._world.tell(
            ME, "leader of" if "broker" in outcome else "log of", partition.name, outcome
        )
