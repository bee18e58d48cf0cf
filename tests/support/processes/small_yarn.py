"""A small YARN on this machine: a ResourceManager and a NodeManager.

Their containers have nothing of the project but what a driver sends: a bare environment, and the Python that the environment was
made with, not the environment.
"""

from __future__ import annotations

import sys

from jobs.runtime import setup as environment
from jobs.runtime.jvm import spark_home
from tests.support.processes.hadoop import HadoopServers, free_port

_PACKAGE = "org.apache.hadoop.yarn.server"
RESOURCE_MANAGER = f"{_PACKAGE}.resourcemanager.ResourceManager"
NODE_MANAGER = f"{_PACKAGE}.nodemanager.NodeManager"
_SETTINGS = {
    "fs.defaultFS": "file:///",
    "yarn.resourcemanager.hostname": "127.0.0.1",
    "yarn.resourcemanager.bind-host": "127.0.0.1",
    "yarn.resourcemanager.scheduler.class": f"{_PACKAGE}.resourcemanager.scheduler.fifo.FifoScheduler",
    "yarn.scheduler.minimum-allocation-mb": 128,
    "yarn.nodemanager.hostname": "127.0.0.1",
    "yarn.nodemanager.address": "127.0.0.1:0",
    "yarn.nodemanager.resource.memory-mb": 4096,
    "yarn.nodemanager.resource.cpu-vcores": 4,
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
}


class SmallYarn(HadoopServers):
    """Runs until `stop`. variables: what a command needs to find it."""

    def __init__(self) -> None:
        super().__init__("small-yarn", ("hadoop", "hadoop-yarn"))
        commands = self.home / "bin"
        commands.mkdir()
        # The archive's Python is a script that looks for this one. Beside it there is no package at all.
        (commands / f"python{sys.version_info.major}.{sys.version_info.minor}").symlink_to(sys._base_executable)  # type: ignore[attr-defined]
        self._variables = {"PATH": f"{commands}:/usr/bin:/bin", "JAVA_HOME": environment.java_runtime().home, "USER": "tester"}
        self.variables = {"HADOOP_CONF_DIR": str(self.home), "SPARK_LOCAL_IP": "127.0.0.1"}
        ports = [f"resourcemanager.{name}address" for name in ("", "scheduler.", "resource-tracker.", "admin.", "webapp.")]
        ports += ["nodemanager.localizer.address", "nodemanager.webapp.address"]
        folders = {name: self.home / name for name in ("local-dirs", "log-dirs")}
        try:
            self.configure(
                {
                    **_SETTINGS,
                    "hadoop.tmp.dir": self.home / "data",
                    **{f"yarn.{name}": f"127.0.0.1:{free_port()}" for name in ports},
                    **{f"yarn.nodemanager.{name}": folder for name, folder in folders.items()},
                },
                "core-site.xml",
                "yarn-site.xml",
            )
            self.start(RESOURCE_MANAGER, r"Transitioned to active state")
            self.start(NODE_MANAGER, r"Registered with ResourceManager as")
        except BaseException:
            self.stop()
            raise

    @property
    def words(self) -> list[str]:
        """The options that a command needs to run here, besides the archive of its environment."""
        return [
            *("--master", "yarn", "--conf", f"spark.yarn.jars=local:{spark_home()}/jars/*"),
            *("--conf", f"spark.yarn.stagingDir={(self.home / 'staging').as_uri()}"),
            *("--conf", "spark.executorEnv.TMPDIR=./tmp", "--conf", "spark.yarn.appMasterEnv.TMPDIR=./tmp"),
            *("--conf", "spark.executor.instances=1", "--driver-memory", "512m", "--executor-memory", "512m"),
        ]
