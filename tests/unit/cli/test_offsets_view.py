from pyspark_kafka.cli.offsets_view import OffsetPair, print_offsets
from pyspark_kafka.domain.topic_partition import TopicPartition


def test_names_of_sources_and_topics_are_printed_as_they_are(capsys):
    sources = ("v2[bold]a", "v2[/red]")
    pairs = [OffsetPair(source, TopicPartition("t[i]", 0), 1, 2) for source in sources]
    print_offsets([("checkpoint", "[c]")], pairs, "from", "to")
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*sources, "t[i]", "[c]"))
