"""DLedger's entries and index units. Big-endian, signed, positions in bytes from the first byte of entry or unit.

Source: DLedgerEntry, DLedgerEntryCoder, MmapFileList, DLedgerMmapFileStore of openmessaging/dledger, read at 0.2.2, 0.3.1.2 and
0.3.2 (dledger.md 1).
"""

import numpy as np

HEADER_DTYPE = np.dtype(
    [
        ("magic", ">i4"),
        ("size", ">i4"),  # of the entry, with this header
        ("index", ">i8"),  # one more per entry
        ("term", ">i8"),  # of the leader that appended it; never falls
        ("pos", ">i8"),  # the entry's own position in the log
        ("channel", ">i4"),  # these three are 0: nobody sets or reads them
        ("chain_crc", ">i4"),
        ("body_crc", ">i4"),
        ("body_size", ">i4"),  # the message's own TOTALSIZE
    ]
)
HEADER_BYTES = HEADER_DTYPE.itemsize  # 48; the message follows
MAGIC = 1
SIZE_POSITION = 4
INDEX_POSITION = 8
TERM_POSITION = 16
POS_POSITION = 24
BODY_SIZE_POSITION = 44

MAGIC_BLANK_BYTES = b"\xff\xff\xff\xff"  # int32 -1, then int32 bytes left: the filler at a data file's end
MIN_BLANK_BYTES = 8

UNIT_DTYPE = np.dtype([("magic", ">i4"), ("pos", ">i8"), ("size", ">i4"), ("index", ">i8"), ("term", ">i8")])
UNIT_BYTES = UNIT_DTYPE.itemsize  # 32; that of entry i begins at byte 32 * i of all index files together
INDEX_FILE_BYTES = 5 * 1024 * 1024 * UNIT_BYTES  # there is no setting

DATA, INDEX, CHECKPOINT, TERM = "data", "index", "checkpoint", "currterm"  # below dledger-<self id>/
COMMITTED_INDEX, END_INDEX, CURRENT_TERM, VOTE_LEADER = "committedIndex", "endIndex", "currTerm", "voteLeader"  # in the two texts
FOLDER_PREFIX = "dledger-"
