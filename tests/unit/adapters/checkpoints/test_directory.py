import pytest

from pyspark_kafka.adapters.checkpoints.directory import (
    batch_id_of,
    failures_of,
    file_name,
    is_temporary,
    problem_of,
    temporary_name,
)
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import MetadataLogError, UnsupportedFeatureError


@pytest.mark.parametrize(
    "name",
    [
        *(".0.crc", "0.crc", "1.compact", "metadata", ".1.0f5b.tmp", ""),
        *("01", "-1", "+1", "1 ", "\u0661", "9" * 20),
    ],
)
def test_other_files_are_not_batches(name):
    assert batch_id_of(name) is None


@pytest.mark.parametrize("batch_id", [0, 7, 10, 2**63 - 1])
def test_a_batch_is_named_by_its_number(batch_id):
    assert batch_id_of(file_name(batch_id)) == batch_id


def test_a_negative_batch_has_no_name():
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        file_name(-1)


def test_temporary_names_are_unique():
    names = {temporary_name("3") for _ in range(100)}
    assert len(names) == 100
    assert all(name.startswith(".3.") and is_temporary(name) for name in names)
    assert not is_temporary(".3.0f5b9a0c-ae5b-4d0c-a1a2-c5a0f4b6b6a1.tmp")


PATH = StoragePath(
    "webhdfs://ada:p%40ss@host/x",
    '{"token": "hush/hush", "client_kwargs": {"a": ["deep"]}, "n": 1,'
    ' "endpoint_url": "http://a:proxied@e"}',
)


class EndpointConnectionError(Exception):
    """Named like an exception of botocore."""


class NoCredentialsError(Exception):
    """Named like another exception of botocore."""


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (PermissionError("no"), "The storage refuses access: PermissionError: no."),
        (NoCredentialsError("no"), "The storage refuses access: NoCredentialsError: no."),
        (
            FileNotFoundError("bucket"),
            "The bucket or directory does not exist: FileNotFoundError: bucket.",
        ),
        (ConnectionResetError("gone"), "The storage does not answer: ConnectionResetError: gone."),
        (TimeoutError(), "The storage does not answer: TimeoutError: no reason given."),
        (EndpointConnectionError("e"), "The storage does not answer: EndpointConnectionError: e."),
        (
            ImportError("no x"),
            "The storage's package cannot be imported: ImportError: no x. Install it again",
        ),
        (
            RuntimeError("odd."),
            "The storage failed: RuntimeError: odd. Check that it has free space",
        ),
    ],
)
def test_a_failure_says_what_it_means(error, meaning):
    assert problem_of(error, PATH).startswith(meaning)


@pytest.mark.parametrize(
    "said",
    [
        "token hush/hush",
        "GET /x?delegation=hush%2Fhush&op=OPEN",
        "quoted hush%2Fhush",
        "http://ada:p%40ss@host/x",
        "only p%40ss",
        "deep",
        "Invalid endpoint: a:proxied@e",
        "Invalid endpoint: http://a:proxied@e",
    ],
)
def test_secrets_are_left_out(said):
    shown = problem_of(OSError(said), PATH)
    for secret in ("hush", "p%40ss", "deep", "proxied"):
        assert secret not in shown


@pytest.mark.parametrize("first", ["wx", "98"])
@pytest.mark.parametrize("scheme", ["s3", "s3a", "webhdfs"])
def test_a_secret_with_a_slash_is_left_out(scheme, first):
    path = StoragePath(f"{scheme}://AKIA:{first}/hush@bucket/x")
    for said in (path.url, f"bucket name AKIA:{first}/hush", f"no {first}/hush"):
        assert "hush" not in problem_of(OSError(said), path)


def test_a_part_of_a_secret_with_a_slash_is_left_out():
    """Python's ``urllib`` takes it for a port, and s3fs for a bucket and a key."""
    path = StoragePath("webhdfs://u:ab/hush@h")
    shown = problem_of(ValueError("Port could not be cast to integer value as 'ab'"), path)
    assert "cast to integer value as '[hidden]'." in shown
    path = StoragePath("s3://AKIA:98/hush@bucket/x")
    shown = problem_of(OSError("no key hush@bucket/x in the bucket AKIA:98"), path)
    assert "no key [hidden]@bucket/x in the bucket AKIA:[hidden]." in shown


def test_a_short_secret_leaves_the_message_readable():
    path = StoragePath("abfss://c@a.dfs.core.windows.net/x", '{"key": "a"}')
    shown = problem_of(OSError("Protocol not known: key a of c"), path)
    assert "Protocol not known: key [hidden] of [hidden]." in shown


def test_the_address_of_a_storage_is_shown():
    assert "no route to http://e" in problem_of(OSError("no route to http://e"), PATH)


def test_a_failure_is_one_short_line():
    """A server's stack trace and a long text are cut."""
    shown = problem_of(OSError("first\n\tat org.apache.hadoop"), PATH)
    assert shown.startswith("The storage failed: OSError: first. Check ")
    assert len(problem_of(OSError("x" * 5_000), PATH)) < 400


def test_a_failure_names_the_path_and_hides_its_cause():
    with pytest.raises(MetadataLogError) as failure, failures_of(PATH):
        raise RuntimeError("hush/hush")
    assert str(failure.value).endswith("(webhdfs://host/x)")
    assert failure.value.__suppress_context__


def test_errors_of_this_library_pass():
    with pytest.raises(UnsupportedFeatureError), failures_of(PATH):
        raise UnsupportedFeatureError("A log", "do it")
