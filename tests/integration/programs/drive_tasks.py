"""Open a channel, print its location and key, and answer each report with a command to stop."""

from __future__ import annotations

from pyspark_kafka.adapters.continuous.socket_channel import SocketEpochChannel
from pyspark_kafka.domain.continuous.messages import StopTask

channel = SocketEpochChannel(ping_interval_s=0.1)
print(channel.address.location, channel.address.key.hex(), flush=True)
while True:
    for message in channel.receive(60.0):
        channel.send(message.task, StopTask())
