"""Lines of broker.conf, read by java.util.Properties and MixAll.properties2Object of each release, against the audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from store_io.base.errors import UsageError
from store_io.base.java.java_properties import parse_properties
from store_io.broker.releases import ALL_DEFAULTS, parse_release, taken_setting
from tests.broker_truth.harness.real_broker import Jvm, pinned_releases

pytestmark = pytest.mark.broker
VALUES = (
    "", "true", "TRUE", "tRue", "true ", "true\t", "true\f", "false", "false ", "yes", "1", "0", "on", "true # why",
    "true;", '"true"',
    "1024", "1024 ", "1024\t", "+7", "-3", "007", "1_000", "1k", "1G", "0x10", "1e3", "12.0", "1L", "2147483647", "2147483648",
    "-2147483648", "9223372036854775807", "9223372036854775808", "\\u0661\\u0662", "\\uff11", "1\\ ", "\\ 1", "+", "- 1",
    "SLAVE", "SLAVE ", "slave", "ASYNC_MASTER", "SYNC_MASTER\t", "MASTER", "defaultRocksDB", "defaultRocksDB ",
    "\\tdefaultRocksDB",
    "DefaultRocksDB", "v2", "v2 ", "a\\u00e9b", "\u00c3\u00a9", "a\\\n  b", "\\u3000x", "\u00a0x\u00a0", "\\u0001x\\u001f",
    "C:\\dir", "==", ": x",
    "\\ud83d\\ude00 ",
)  # fmt: skip
TEXTS = (
    "#a\n! b\n\n  k1 = v1 \nk2:v2\nk3 v3\nk4\tv4\nk5", "k=1\nk=2", "k=a\\\n   b,\\\r\n\tc\rl=2\\", "\u00ef\u00bb\u00bfk=1\nl=2",
    "\\\n#k=1\nl=1\\\n#2\nm=3\\\n\n n=4", "k\\ a\\=b\\:c=\\q\\t\\\\", "k=\\u00zz", "k=\\u12", " \f k \f = \f v \f ",
    "a\\\\=b\n=c\n:d",
    "k\u0085l=1\u2028", "k=\\\\\\\nl=1", "k=v\\", "k=\\", "!\\\nk=1", "k\n\n\nl =",
)  # fmt: skip


def loaded(jvm: Jvm, text: str) -> Any:
    properties = jvm.gateway.jvm.java.util.Properties()
    properties.load(jvm.gateway.jvm.java.io.ByteArrayInputStream(text.encode("latin-1", "replace")))
    return properties


class Objects:
    """BrokerConfig and MessageStoreConfig of a release, and the fields behind their setters, whatever a getter makes of them."""

    def __init__(self, jvm: Jvm):
        base = jvm.gateway.jvm.org.apache.rocketmq
        self.classes = base.common.BrokerConfig, base.store.config.MessageStoreConfig
        self.fields: list[dict[str, Any]] = []
        for made in self.classes:
            kind, fields = made().getClass(), {}
            setters = {method.getName().lower() for method in kind.getMethods()}
            while kind is not None:
                for field in kind.getDeclaredFields():
                    name = str(field.getName())
                    if f"set{name}".lower() in setters and name in ALL_DEFAULTS:
                        field.setAccessible(True)
                        fields.setdefault(name, field)
                kind = kind.getSuperclass()
            self.fields.append(fields)

    def fresh(self) -> list[Any]:
        return [made() for made in self.classes]

    def values(self, objects: list[Any]) -> dict[str, Any]:
        """By key, of the keys with a setter."""
        found = {key: field.get(own) for own, fields in zip(objects, self.fields, strict=True) for key, field in fields.items()}
        return {**found, "brokerRole": str(found["brokerRole"])}


@pytest.mark.parametrize(
    "release", [release for release in pinned_releases() if release != "5.3.4"]
)  # its BrokerConfig is not published
def test_every_setting_is_taken_as_the_release_takes_it(release: str, jvm_of: Callable[[str], Jvm]) -> None:
    jvm = jvm_of(release)
    objects, mix = Objects(jvm), jvm.gateway.jvm.org.apache.rocketmq.common.MixAll
    own = objects.values(objects.fresh())
    version = parse_release(release)
    defaults = {key: taken_setting(key, str(default), version) for key, default in ALL_DEFAULTS.items()}
    assert own.keys() == {key for key, setting in defaults.items() if setting.origin == "broker.conf"}
    own_defaults = {key for key in own if ALL_DEFAULTS[key] != ""}
    if release < "5.1.1":
        own_defaults.discard("transactionCheckInterval")  # 60,000 there, and asked by 5.4.0 and later alone
    assert {key: own[key] for key in own_defaults} == {key: ALL_DEFAULTS[key] for key in own_defaults}
    for text in VALUES:
        conf = "\n".join(f"{key}={text}" for key in ALL_DEFAULTS)
        made = objects.fresh()
        for each in made:
            mix.properties2Object(loaded(jvm, conf), each)
        texts = parse_properties(conf)
        expected = {key: taken_setting(key, texts[key], version) for key in own}
        found = objects.values(made)
        if found.get("commitLogRecoverMaxNum", 1) <= 0:
            found["commitLogRecoverMaxNum"] = 10  # as recovery takes it
        assert found == {key: s.value if s.origin == "broker.conf" else own[key] for key, s in expected.items()}, repr(text)


def test_files_are_read_as_java_reads_them(jvm_of: Callable[[str], Jvm]) -> None:
    jvm = jvm_of("5.5.0")
    for text in TEXTS:
        text = text.encode("latin-1", "replace").decode("latin-1")
        try:
            found = dict(loaded(jvm, text))
        except Exception as problem:
            assert "IllegalArgumentException" in str(problem)
            with pytest.raises(UsageError):
                parse_properties(text)
            continue
        assert parse_properties(text) == found, repr(text)
