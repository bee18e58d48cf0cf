"""What differs between releases (recovery.md section 0), and the configuration with its defaults."""

from dataclasses import dataclass

from tests.support.second_witness.java import parse_number


@dataclass
class Rules:
    release: str

    def __post_init__(self):
        self.version = tuple(int(n) for n in self.release.split("."))

    def at_least(self, text):
        return self.version >= tuple(int(n) for n in text.split("."))


FILE_SIZES = {
    "mappedFileSizeCommitLog": 1 << 30,
    "mappedFileSizeConsumeQueue": 300000 * 20,
    "mappedFileSizeConsumeQueueExt": 48 << 20,
    "mapperFileSizeBatchConsumeQueue": 300000 * 46,
    "maxHashSlotNum": 5000000,
    "maxIndexNum": 20000000,
}
FLAGS = {
    "checkCRCOnRecover": True,
    "forceVerifyPropCRC": False,
    "duplicationEnable": False,
    "messageIndexEnable": True,
    "messageIndexSafe": False,
    "enableConsumeQueueExt": False,
    "recheckReputOffsetFromCq": False,
    "enableLmq": False,
    "enableMultiDispatch": False,
    "enableControllerMode": False,
    "enableAcceleratedRecovery": False,
    "checkCommitLogOffsetOnRecover": False,
}
OTHERS = {
    "commitLogRecoverMaxNum": 10,
    "brokerId": 0,
    "messageDelayLevel": "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
}


class Config:
    def __init__(self, text):
        given = {}
        for line in text.splitlines():
            if "=" in line and not line.lstrip().startswith(("#", "!")):
                key, value = line.split("=", 1)
                given[key.strip()] = value.strip()
        self.given = given
        for key, default in FILE_SIZES.items():
            setattr(self, key, int(given.get(key, default)))
        for key, default in FLAGS.items():
            setattr(self, key, given.get(key, str(default)).lower() == "true")
        for key, default in OTHERS.items():
            setattr(self, key, type(default)(given.get(key, default)))
        self.mappedFileSizeConsumeQueue = -(-self.mappedFileSizeConsumeQueue // 20) * 20
        if self.commitLogRecoverMaxNum <= 0:
            self.commitLogRecoverMaxNum = 10
        units = {"s": 1000, "m": 60000, "h": 3600000, "d": 86400000}
        self.delays = {}
        for level, part in enumerate(self.messageDelayLevel.split(), 1):
            self.delays[level] = parse_number(part[:-1], 64) * units[part[-1]]
