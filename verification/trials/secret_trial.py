"""Secrets in right and wrong options of queries and commands, and in no other place."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from tests.integration.commands import command
from tests.integration.test_no_secret_leaks import (
    CLIENTS,
    LOGS_EVERYTHING,
    PLANTED,
    Leaks,
    client_options,
    forms_of,
    needles,
    running_program,
    surroundings,
)
from tests.servers.secured import MECHANISMS, TLS_MECHANISM, SecuredBroker
from tests.unit.adapters.test_secrets_in_errors import MODULE, OPTIONS, SECRETS

PROGRAM: Final = Path(__file__).parent / "programs" / "use_and_fail.py"
ROOT: Final = Path(__file__).parents[2]
KINDS: Final = ("read", "view", "write", "at-least-once", "exactly-once", "continuous")
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "doctor": (),
    "lag": ("--once", "--checkpoint", "checkpoint/0"),
    "tail": ("any", "--once"),
    "topics": (),
}
PLACES: Final = {
    *("arguments", "checkpoint", "errors", "events", "local", "log", "plans", "tmp", "tracebacks")
}
"""Where a program leaks a text on purpose."""

PLAIN, JAAS, KEY, URL, STORAGE = (
    "{}",
    f'{MODULE} required username="u" password="{{}}";',
    "-----BEGIN PRIVATE KEY-----\nMIIE{}\n-----END PRIVATE KEY-----\n",
    "s3://AKIA:ab/{0}@bucket/x?sig={0}",
    '{{"secret": "{}"}}',
)
KNOWN: Final = {
    **{f"kafka.{name}": JAAS if "jaas" in name else PLAIN for name in SECRETS},
    "kafka.ssl.keystore.key": KEY,
    "kafka.ssl.key.pem": KEY,
    "metadataStorageOptions": STORAGE,
    "schema.registry.bearer.auth.token": PLAIN,
    "schema.registry.basic.auth.user.info": "u:{}",
}
"""Options that hold a secret, and its form. In other options, the form shows that it is one."""

SOON: Final = {
    "kafka.default.api.timeout.ms": "2000",
    "kafka.request.timeout.ms": "1000",
    "kafka.max.block.ms": "2000",
    "kafka.delivery.timeout.ms": "3000",
    "kafkaConsumer.pollTimeoutMs": "2000",
    "fetchOffset.numRetries": "1",
}
"""Settings that make uses fail within seconds."""


class RandomUses:
    """Options with a new secret in each place; ``needles`` has each secret by what it was for."""

    def __init__(self, secured: SecuredBroker, random: Random) -> None:
        self.needles = needles(secured)
        self._secured = secured
        self._random = random

    def options(self, use: str, client: str) -> dict[str, str]:
        """Return options of a login that is right, fails, or has secrets in any option."""
        given = {**client_options(client), **SOON}
        mechanism = self._random.choice(("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", TLS_MECHANISM))
        right = given | self._secured.options(mechanism)
        match self._random.randrange(8):
            case 0 | 1:
                return right
            case 2:
                password = self._new(use, "wrong password")
                return given | self._secured.plain_options(MECHANISMS["PLAIN"], password)
            case 3:
                login = self._secured.plain_options("u", self._new(use, "unreachable"))
                return given | login | {"kafka.bootstrap.servers": "127.0.0.1:1"}
            case 4:
                url = self._new(use, "registry", "http://u:{}@127.0.0.1:1")
                return right | {"valueFormat": "avro", "schema.registry.url": url}
            case _:
                chosen = self._random.sample(sorted(KNOWN), self._random.randint(0, 2))
                pasted = {self._random.choice(OPTIONS): self._random.choice((JAAS, KEY, URL))}
                shapes = {name: KNOWN[name] for name in chosen} | pasted
                return right | {name: self._new(use, name, form) for name, form in shapes.items()}

    def _new(self, use: str, name: str, form: str = PLAIN) -> str:
        secret = f"canary{self._random.getrandbits(64):016x}"
        self.needles[f"{use}: {name} {secret}"] = forms_of(secret)
        return form.format(secret)


@dataclass
class SecretTrial:
    """Rounds of queries and commands, each from a seed."""

    secured: SecuredBroker
    directory: Path
    say: Callable[[str], None] = print
    kept: Path = Path("build/trials")
    uses: int = 24
    commands: int = len(COMMANDS)
    counts: Counter[str] = field(default_factory=Counter)

    def run_round(self, seed: int) -> bool:
        """Run queries and commands, search what they leave, and return whether there was nothing.

        :raises AssertionError: if the search does not find what the program leaks on purpose.
        """
        random = Random(seed)  # noqa: S311  # the same for the same seed
        made = RandomUses(self.secured, random)
        folder = self.directory / str(seed)
        for each in (self.kept, folder / "inputs", folder / "searched" / "tmp"):
            each.mkdir(parents=True, exist_ok=True)
        uses = []
        for number in range(self.uses):
            kind, client = random.choice(KINDS), random.choice(CLIENTS)
            uses.append((kind, made.options(f"{number} {kind} {client}", client)))
        chosen = random.sample(sorted(COMMANDS), self.commands)
        commands = {
            name: self._command(name, random.choice(CLIENTS), folder, made) for name in chosen
        }
        found = Leaks(folder / "searched", made.needles)
        with found.watching_arguments():
            self._run(folder, f"secrets-{seed}", uses, commands)
        places = found.in_files() | found.in_arguments
        assert {place for name, place in places if name == "planted"} >= PLACES
        leaks = sorted(f"{name} in {place}" for name, place in places if name != "planted")
        if leaks:
            shutil.rmtree(self.kept / folder.name, ignore_errors=True)
            kept = shutil.move(folder, self.kept / folder.name)
            self.say("\n".join([*(f"LEAKED {leak}" for leak in leaks), f"All is in {kept}"]))
        else:
            shutil.rmtree(folder)
        self.counts.update(uses=len(uses), secrets=len(made.needles), leaks=len(leaks))
        self.say(f"seed {seed}: {json.dumps(self.counts)}")
        return not leaks

    @staticmethod
    def _command(name: str, client: str, folder: Path, made: RandomUses) -> list[str]:
        options = made.options(f"{name} {client}", client)
        servers = options.pop("kafka.bootstrap.servers")
        lines = [
            f"{each.removeprefix('kafka.')}={text}".replace("\n", " ")
            for each, text in options.items()
            if each.startswith("kafka.")
        ]
        config = folder / "inputs" / f"{name}.properties"
        config.write_text("\n".join(lines))
        brokers = ("--bootstrap-servers", servers, "--client", client)
        return command(name, *brokers, "--command-config", str(config), *COMMANDS[name])

    def _run(
        self,
        folder: Path,
        topic: str,
        uses: list[tuple[str, dict[str, str]]],
        commands: Mapping[str, list[str]],
    ) -> None:
        """Run the queries, and then the commands, each to its end."""
        searched, inputs = folder / "searched", folder / "inputs"
        (inputs / "sitecustomize.py").write_text(LOGS_EVERYTHING)
        environment = surroundings(self.secured, searched, inputs)
        for name in (topic, f"{topic}-copy"):
            self.secured.cluster.create_topic(name)
        given = {"searched": str(searched), "planted": PLANTED, "topic": topic, "uses": uses}
        in_program = environment | {"PYTHONPATH": f"{environment['PYTHONPATH']}:{ROOT}"}
        with running_program(in_program, searched, given, PROGRAM) as process:
            ended = process.stdout.readline() if process.stdout else ""
            assert "failed" in ended, (searched / "errors").read_text()[-4_000:]
            self.counts["failed uses"] += int(ended.split()[0])
            for name, line in commands.items():
                with (searched / f"output of {name}").open("w") as output:
                    ran = subprocess.run(
                        line, stdout=output, stderr=output, timeout=60, check=False,
                        cwd=searched, env=environment,
                    )  # fmt: skip
                self.counts["failed commands"] += ran.returncode != 0
