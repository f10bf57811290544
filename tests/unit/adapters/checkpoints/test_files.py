import pytest

from pyspark_kafka.adapters.checkpoints import files, local
from pyspark_kafka.adapters.checkpoints.files import read_schema_file
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import OptionsError, UnsupportedFeatureError


def test_a_local_file_has_a_path_a_url_or_a_relative_path(tmp_path, monkeypatch):
    file = tmp_path / "a.avsc"
    file.write_bytes(b"{}")
    monkeypatch.chdir(tmp_path)
    for path in (str(file), f"file://{file}", "a.avsc"):
        assert read_schema_file(StoragePath(path)) == b"{}"


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    with pytest.raises(OptionsError, match=r"a.avsc cannot be used: it does not exist"):
        read_schema_file(StoragePath(f"{tmp_path}/a.avsc"))
    with pytest.raises(OptionsError, match=r"a.avsc cannot be used: The storage failed"):
        read_schema_file(StoragePath("/dev/null/a.avsc"))
    with pytest.raises(UnsupportedFeatureError):
        read_schema_file(StoragePath("http://127.0.0.1:1/a.avsc"))
    (tmp_path / "b.avsc").write_bytes(b"12345")
    monkeypatch.setattr(files, "MAX_SCHEMA_BYTES", 4)
    with pytest.raises(OptionsError, match=r"b.avsc cannot be used: it is larger than"):
        read_schema_file(StoragePath(f"{tmp_path}/b.avsc"))
    monkeypatch.setattr("pyspark_kafka.adapters.checkpoints.directory.MAX_FILE_BYTES", 4)
    monkeypatch.setattr(local, "MAX_FILE_BYTES", 4)
    with pytest.raises(OptionsError, match=r"b.avsc cannot be used: it is larger than"):
        read_schema_file(StoragePath(f"{tmp_path}/b.avsc"))
