"""The pages, without a browser: golden files, hostile text stays text, commands survive a shell, sizes are bounded."""

from __future__ import annotations

import random
import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.command_line import options
from jobs.command_line.options import StoreArgument
from jobs.report.files.findings_jsonl import findings_jsonl
from jobs.report.files.plan_json import plan_json
from jobs.report.pages.answer import style_of
from jobs.report.pages.index_html import index_html
from jobs.report.pages.report_html import PageContext, report_html
from jobs.report.pages.segment_map import CELLS, MAX_SHOWN
from jobs.report.pages.watermarks import offset_marks
from jobs.report.texts.commands import closer_look, command_line, repair_commands, shell_word, store_words
from jobs.report.texts.judgement import judge, most_dangerous_first
from jobs.report.texts.summary_text import summary_text
from jobs.report.texts.text import printable
from schemas.rows import AuditOutcome, Finding
from tests.jobs.report.test_report import check
from tests.support import builders, damage, samples
from tests.support.corpus_tools import CORPUS
from tests.support.pages import Page
from tests.support.product import audit

MAKERS = [samples.clean, samples.damaged, samples.not_audited, samples.refused]
WORDS = ("/copies/a b", "--release", "4.9.8", "--broker-conf", "/conf/b'c.conf")
CONTEXT = PageContext(samples.RUN, WORDS, "/out/a/plan.json", index=True)


def page_of(outcome: AuditOutcome, context: PageContext | None = CONTEXT) -> Page:
    return Page("".join(report_html(outcome, context)))


def index_of(outcomes: list[AuditOutcome]) -> Page:
    return Page("".join(index_html(samples.RUN, outcomes)))


def without_style(text: str) -> str:
    """The style sheet is the same in all of them: the golden files leave it out."""
    text = re.sub(r"<style>.*?</style>", "<style></style>", text, flags=re.DOTALL)
    return re.sub(r"sha256-[A-Za-z0-9+/=]+", "sha256-", text)


@pytest.mark.parametrize("make", MAKERS, ids=lambda m: m.__name__)
def test_page_of_a_store(make: Any) -> None:
    check(f"report-{make.__name__}.html", without_style(page_of(make()).source))


def test_page_of_a_run() -> None:
    check("index.html", without_style(index_of([make() for make in MAKERS]).source))


@pytest.mark.parametrize("make", MAKERS, ids=lambda m: m.__name__)
def test_a_page_loads_nothing_runs_nothing_and_can_be_heard(make: Any) -> None:
    assert page_of(make()).problems() == []
    assert page_of(make(), None).problems() == []


def test_the_page_of_a_run_too() -> None:
    assert index_of([make() for make in MAKERS]).problems() == []
    assert index_of([]).problems() == []


# ---- hostile text --------------------------------------------------------------------------------------------------

HOSTILE = [
    samples.HOSTILE, "<img src=x onerror=alert(1)>", "]]>--><style>*{display:none}</style>",
    "../../etc/passwd", "a" * 255,
    "\u202egnp.exe", "x\x00y\x1b]0;t\x07", "\ud800lone", "javascript:alert(1)", "$(touch gone)`id`;|&", "-rf", "--", "'",
    '"', "é消息🚀",
]  # fmt: skip


def hostile_outcome(name: str) -> AuditOutcome:
    """Every text that can come from a store holds it."""
    outcome = samples.damaged()
    outcome.name = outcome.location_text = outcome.verdict = outcome.replica_group = name
    outcome.incomplete = [name]
    outcome.findings = [
        Finding(code, f"consumequeue/{name}/0/0", 0, 20, severity, 5, name, 0, 7, name, name, name, name, 3)
        for code, severity in (("queue_entry_wrong", "rebuildable"), ("commitlog_damaged", "loss"), ("file_unrecognised", "note"))
    ]
    outcome.queues = [{"topic": name, "queue_id": 0, "wrong": 3, "problem": name, "log_end_offset": 9, "dispatch_max_offset": 1}]
    outcome.index_files = [{"file": f"index/{name}", "findings": 1, "problem": name}]
    times = {"first_store_time": 1, "last_store_time": 2}
    outcome.loss = {
        "messages": 1, "bytes": 2, "by_topic": [{"topic": name, "messages": 1, **times}],
        "groups": [{"group": name, "topic": name, "queue_id": 0, "offset": 9, "new_max": 1}],
    }  # fmt: skip
    outcome.segments[0] |= {"problem": name, "file": f"commitlog/{name}"}
    outcome.segments[1]["extents"][1]["reason"] = name
    broker = outcome.plan["broker"]
    broker |= {"deleted_files": [name], "start_segment": name, "stop_reason": name}
    broker["lost"] = {
        "by_queue": [{"topic": name, "queue_id": 0, "messages": 1, "first_store_time": name, "last_store_time": name}]
    }
    outcome.plan["steps"] = [{"action": "delete", "file": name, "start": 0, "end": 1, "reason": name}] * 2
    outcome.plan["settings"] = {name: {"value": name, "from": name}}
    return outcome


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:20])
def test_hostile_text_stays_text(name: str) -> None:
    plain = [tag for tag, _ in page_of(hostile_outcome("plain")).tags]
    page = page_of(hostile_outcome(name), replace(CONTEXT, store_words=("/" + name, "--release", name)))
    assert page.problems() == []
    # The same page, tag for tag, but for the commands, which are left out where no shell can hold a word, and break at options.
    leave = ("code", "span", "p")
    assert [tag for tag in plain if tag not in leave] == [tag for tag, _ in page.tags if tag not in leave]
    assert page.text.count(printable(name)) >= 15
    assert not set(page.text) & set("\x00\x1b\x07\u202e\ud800")
    listed = index_of([hostile_outcome(name)])
    assert listed.problems() == [] and printable(name) in listed.text


def test_the_link_to_a_store_leads_to_its_folder() -> None:
    outcome = samples.clean()
    outcome.name = "a%2Fb?#&"
    assert [a["href"] for a in index_of([outcome]).all("a")] == ["a%252Fb%3F%23%26/report.html"]


# ---- commands ------------------------------------------------------------------------------------------------------


def test_words_survive_a_shell() -> None:
    words = [word for word in HOSTILE if "\0" not in word] + ["", " ", "a\nb", "\\", "\x7f\\x41", "\udcff"]
    line = "printf '%s\\0' " + " ".join(map(shell_word, words))
    assert printable(line.encode("utf-8", "strict").decode()) == line  # nothing in it steers a terminal
    told = subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout.split(b"\0")[:-1]
    expected = [b"\xff" if word == "\udcff" else word.encode("utf-8", "surrogatepass") for word in words]
    assert told == expected


def test_the_command_that_looks_closer() -> None:
    damaged = Finding("commitlog_damaged", "commitlog/0", 5, 9, phy_offset=5)
    quoted = "'/copies/a b' --release 4.9.8 --broker-conf '/conf/b'\"'\"'c.conf'"
    assert closer_look(damaged, WORDS) == f"./spark-submit.sh explain {quoted} --phy-offset 5"
    entry = Finding(
        "queue_entry_missing", "consumequeue/t/3/0", 5, 9, phy_offset=5, topic="-t", queue_id=3, queue_offset=70, count=9
    )
    assert closer_look(entry, ("/s",)) == (
        "./spark-submit.sh query /s --topic=-t --queue 3 --from-queue-offset 70 --to-queue-offset 79"
    )
    assert closer_look(replace(entry, count=10**9), ("/s",)).endswith("--from-queue-offset 70 --to-queue-offset 170")
    assert "--topic 'a\\,b' --queue" in closer_look(replace(entry, topic="a,b"), ("/s",))  # one topic, not two
    assert closer_look(Finding("checkpoint_missing", "checkpoint"), WORDS) == ""
    assert command_line("explain", ("/a\0b",), []) == ""


def test_the_words_of_a_store_read_it_in_the_same_way() -> None:
    plain = StoreArgument("s", "/s", "5.3.3")
    assert store_words(plain) == ("/s", "--release", "5.3.3")
    parts = (("commitlog", ("/d1", "/d2")), ("index", ("/i",)))
    given = replace(plain, broker_conf="a=b", broker_conf_file="/c", parts=parts)
    assert store_words(replace(plain, broker_conf="a=b", broker_conf_file="/dev/fd/63"))[3:] == ("--broker-conf", "broker.conf")
    assert store_words(given)[3:] == ("--broker-conf", "/c", "--commitlog", "/d1,/d2", "--index", "/i")


def test_every_command_is_one_that_the_product_takes(tmp_path: Path) -> None:
    outcome = samples.damaged()
    outcome.plan["steps"].append({"action": "delete", "file": "x", "reason": "r"})
    conf = tmp_path / "b'c.conf"
    conf.write_text("maxIndexNum=5")
    words = (str(tmp_path / "a b"), "--release", "4.9.8", "--broker-conf", str(conf), "--commitlog", "/d 1,/d2")
    finding = Finding("queue_entry_missing", "consumequeue/t/3/0", 5, 9, topic="-t", queue_id=3, queue_offset=70, count=9)
    commands = [closer_look(finding, words), closer_look(replace(finding, code="message_lost", phy_offset=5), words)]
    commands += [command for _, command in repair_commands(outcome, words, "/out/$x/plan.json")]
    parsed = []
    for command in commands:
        told = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True, text=True).stdout
        parsed.append(options.parse(told.split("\0")[1:-1]))
        store = options.single_store(parsed[-1])
        assert (store.path, store.release, store.broker_conf) == (words[0], "4.9.8", "maxIndexNum=5")
        assert store.parts == (("commitlog", ("/d 1", "/d2")),)
    assert [command.name for command in parsed] == ["query", "explain", "repair", "repair"]
    assert (parsed[0].options["--topic"], parsed[0].options["--to-queue-offset"]) == ("-t", "79")
    assert (parsed[2].options["--policy"], parsed[2].options["--plan"]) == ("salvage", "/out/$x/plan.json")
    assert parsed[3].options["--to"] == words[0] + "-repaired" and parsed[3].options["--policy"] == "broker"


def test_a_repair_is_offered_where_there_is_something_to_do() -> None:
    assert repair_commands(samples.clean(), WORDS, "/p") == []
    assert repair_commands(samples.not_audited(), WORDS, "/p") == []
    outcome = samples.refused()
    outcome.plan["steps"] = [{"action": "delete", "file": "x"}]
    assert [what for what, _ in repair_commands(outcome, WORDS, "/p")] == [
        "Repair with --policy salvage: keeps 9 messages and removes what stops the release",
        "Repair with --policy broker: removes what stops the release, then keeps what the release keeps",
    ]
    assert repair_commands(outcome, ("s3://b/s", "--release", "5.3.3"), "/p") == []
    assert repair_commands(replace(outcome, complete=False), WORDS, "/p") == []  # repair refuses such a plan
    emptied = [Finding("commitlog_emptied", "commitlog", severity="loss")]
    assert repair_commands(replace(outcome, messages=0, findings=emptied), WORDS, "/p") == []


# ---- bounds --------------------------------------------------------------------------------------------------------


def large() -> AuditOutcome:
    outcome = samples.damaged()
    topics = [f"topic-{i}-{'x' * 100}" for i in range(10_000)]
    codes = [("queue_entry_wrong", "rebuildable"), ("message_lost", "loss"), ("queue_pre_blank", "note")]
    outcome.findings = [
        Finding(
            *(codes[i % 3][0], f"consumequeue/{topics[i % 10_000]}/0/0", i, i + 20, codes[i % 3][1], i, topics[i % 10_000], 0, i),
            expected="1", actual="2", message=f"entry {i}", next="Rebuild this queue.",
        )
        for i in range(100_000)
    ]  # fmt: skip
    outcome.queues = [{"topic": t, "queue_id": 0, "wrong": 10, "lost_messages": 1, "load_max_phy_offset": 5} for t in topics]
    outcome.index_files = [{"file": f"index/{i}", "findings": 1, "entries": 5} for i in range(5_000)]
    outcome.loss["by_topic"] = [{"topic": t, "messages": 1, "first_store_time": 1, "last_store_time": 2} for t in topics]
    outcome.loss["groups"] = [{"group": "g", "topic": t, "queue_id": 0, "offset": 9, "new_max": 1} for t in topics]
    outcome.plan["broker"]["lost"]["by_queue"] = [
        {"topic": t, "queue_id": 0, "messages": 1, "first_store_time": "a", "last_store_time": "b"} for t in topics
    ]
    step = {"action": "truncate", "file": "consumequeue/x", "start": 0, "end": 1, "reason": "r"}
    outcome.plan["steps"] = [{**step, "reason": f"r{i % 2}"} for i in range(10_000)]
    outcome.incomplete = [f"sentence {i}" for i in range(10_000)]
    outcome.segments = [
        {**samples.damaged().segments[i % 2], "base_offset": i * 1024 + (i // 9) * 4096, "file": f"commitlog/{i:020}"}
        for i in range(5_000)
    ]
    many = [{"kind": kind, "start": at, "end": at + 5} for at in range(0, 1_000_000, 10) for kind in ("message", "damaged")]
    outcome.segments[7] |= {"size_bytes": 1_000_000, "extents": many}
    return outcome


def test_the_page_of_a_large_store_is_bounded_in_size_time_and_pieces() -> None:
    outcome = large()
    began = time.process_time()
    pieces = list(report_html(outcome, CONTEXT))
    seconds = time.process_time() - began
    source = "".join(pieces)
    assert seconds < 3
    assert len(source) < 3_000_000
    assert max(map(len, pieces)) < 1_000_000
    page = Page(source)
    assert page.problems() == []
    assert "33,314 more findings are not shown here: findings.jsonl" in page.text  # 33,334 of a code, 20 shown
    assert "9,700 more rows are not shown here: the table queues has all" in page.text
    assert "9,700 more sentences are not shown here" in page.text
    assert len([c for c in page.all("svg") if c.get("class") == "bar"]) <= 2 * MAX_SHOWN + 2


def test_a_long_sound_log_is_folded_but_for_what_matters() -> None:
    outcome = samples.clean()
    sound = outcome.segments[0] | {"size_bytes": 1024, "extents": [{"kind": "message", "start": 0, "end": 1024}], "messages": 2}
    outcome.segments = [{**sound, "base_offset": i * 1024, "file": f"commitlog/{i * 1024:020}"} for i in range(1000)]
    outcome.segments[500] |= {"extents": [{"kind": "damaged", "start": 0, "end": 1024, "reason": "magic"}], "messages": 0}
    del outcome.segments[800:803]
    outcome.plan["broker"] |= {"truncate_at": 997 * 1024, "start_segment": f"{990 * 1024:020}"}
    text = page_of(outcome).text
    items = text.partition("The whole log")[2].partition("Where each file ends")[0]
    assert re.findall(r"(\d+) segments, 0", items) == ["499", "299", "187", "6"]
    assert "no file for 3,072 bytes" in items and "damaged 1.02 KB" in items and "recovery begins here" in items
    assert "cut at byte 0, physical offset 1,020,928" in items


def test_what_one_cut_takes_from_many_queues_is_told_as_one() -> None:
    def step(action: str, file: str, reason: str = "cut") -> dict[str, Any]:
        return {"action": action, "file": file, "start": 0, "end": 20, "reason": reason, "lost_messages": 2, "lost_bytes": 9}

    outcome = samples.damaged()
    queues = [step("delete" if i % 2 else "truncate", f"consumequeue/t{i}/0/0") for i in range(10)]
    outcome.plan["steps"] = [
        step("keep", "commitlog/0", "sound"),
        step("delete", "commitlog/1"),
        *queues,
        step("rebuild", "index/1"),
    ]
    text = page_of(outcome).text.partition("made consistent, step by step")[2]
    assert (
        "1. keep commitlog/0, bytes 0 to 20" in text and "2. delete commitlog/1, bytes 0 to 20, gives up 2 messages, 9 B" in text
    )
    assert "3 to 12. delete 5 queue files, truncate 5 queue files, gives up 20 messages, 90 B" in text
    assert "13. rebuild index/1" in text


# ---- the map -------------------------------------------------------------------------------------------------------


def bar_of(segment: dict[str, Any], cut: int | None = None) -> list[str]:
    """kind*cells from left to right, of the bar of this segment alone."""
    outcome = samples.clean()
    outcome.segments = [segment]
    outcome.plan["broker"] = None if cut is None else {"starts": True, "truncate_at": cut}
    tags = page_of(outcome).tags
    start = next(i for i, (tag, a) in enumerate(tags) if tag == "svg" and a.get("class") == "bar")
    rects = []
    for tag, a in tags[start + 2 :]:  # behind its title
        if tag not in ("rect", "line"):
            break
        if tag == "rect":
            rects.append(f"{a['class'].removeprefix('k-')}*{round(float(a['width'].rstrip('%')) * CELLS / 100)}")
    return rects


def test_a_bar_tells_each_kind_in_place_and_never_hides_damage() -> None:
    segment: dict[str, Any] = samples.damaged().segments[1]
    assert bar_of(segment) == ["message*23", "damaged*48", "plausible*94", "message*46", "unwritten*29"]
    assert bar_of(segment, 1024 + 800)[3:] == ["message*22", "beyond*24", "unwritten*29"]
    tiny = {"kind": "damaged", "start": 500_000, "end": 500_001}
    rest = [{"kind": "message", "start": 0, "end": 500_000}, {"kind": "message", "start": 500_001, "end": 1_000_000}]
    big = {"file": "commitlog/0", "base_offset": 0, "size_bytes": 1_000_000, "extents": [rest[0], tiny, rest[1]]}
    assert bar_of(big) == ["message*120", "damaged*1", "message*119"]
    assert bar_of({**big, "problem": "cannot be read"}) == ["unread*240"]
    assert bar_of({**big, "size_bytes": 0}) == []


def test_a_wild_value_does_not_squeeze_the_scale() -> None:
    outcome = samples.damaged()
    outcome.checkpoint = {"confirm_phy_offset": 1 << 60, "physic_time": 1 << 60, "logics_time": 0, "index_time": samples.START_MS}
    assert [m.last for m in offset_marks(outcome, None)] == [2048, 1924, 0, 1 << 60]
    page = page_of(outcome)
    assert "1,152,921,504,606,846,976 (beyond the log)" in page.text
    assert "checkpoint: ConsumeQueues flushed up tonot set" in page.text
    places = [float(c["cx"].rstrip("%")) for c in page.all("circle") if "cx" in c and "%" in c["cx"]]
    assert places and all(0 <= place <= 100 for place in places)


# ---- the answer ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "kind", "headline"),
    [
        (samples.clean, "safe", "Safe to start"),
        (samples.refused, "refuses", "RocketMQ 5.3.3 does not start on this copy"),
        (samples.not_audited, "unknown", "Not known whether this copy is safe to start"),
    ],
    ids=["clean", "refused", "not-audited"],
)
def test_the_answer(make: Any, kind: str, headline: str) -> None:
    answer = judge(make())
    assert (answer.kind, answer.headline) == (kind, headline)


@pytest.mark.parametrize(
    ("case", "release", "headline"),
    [
        ("g04-533-clean-all", "5.3.3", "Safe to start"),
        ("g14-533-torn-old-seen", "5.3.3", "Do not start this copy yet"),
        ("g29-498-cq-wrong", "4.9.8", "Do not start this copy before its queues are rebuilt"),
        ("g11-533-zero-tail", "5.3.3", "Messages are missing from this copy already; a start loses none of the others"),
        ("g81-550-logics-time", "5.5.0", "A start loses no message, but queues, index or other derived files need a rebuild"),
        ("g76-550-foreign-commitlog", "5.5.0", "RocketMQ 5.5.0 does not start on this copy"),
    ],
)
def test_the_answer_for_real_stores(case: str, release: str, headline: str, tmp_path: Path) -> None:
    subprocess.run(["tar", "xJf", str(CORPUS / case / "store.tar.xz"), "-C", str(tmp_path)], check=True)
    (root,) = tmp_path.rglob("commitlog")
    outcome = audit(root.parent, release, (CORPUS / case / "broker.conf").read_text(encoding="latin-1")).outcome
    page = page_of(outcome)
    assert headline in page.text and outcome.verdict in page.text
    assert page.problems() == []


def test_a_damaged_store_that_was_not_wholly_read_is_not_safe() -> None:
    outcome = samples.damaged()
    outcome.plan["broker"], outcome.incomplete = None, ["commitlog/0: cannot be read"]
    assert judge(outcome).kind == "stop"
    assert "cannot be read" in page_of(outcome).text


def test_the_most_dangerous_store_comes_first() -> None:
    hurt = samples.damaged()
    hurt.findings = [replace(hurt.findings[0], code="broker_drops_messages", count=12)]
    mild = replace(hurt, name="mild", loss={"messages": 1, "bytes": 1})
    fleet = [samples.clean(), samples.refused(), mild, samples.not_audited(), hurt]
    assert [o.name for o, _ in most_dangerous_first(fleet)] == ["hurt-\u202e", "mild", "stuck", "gone", "calm"]
    page = index_of(fleet)
    assert "3 of 5 stores are not safe to start" in page.text
    assert [a["href"] for a in page.all("a")][2:] == ["stuck/report.html", "gone/report.html", "calm/report.html"]


def every_kind() -> list[AuditOutcome]:
    """Outcomes of every kind and code, alone and as copies that lack messages of their group."""
    made = (
        samples.clean, samples.already_damaged, samples.damaged, samples.not_audited, samples.refused, samples.empty,
        samples.emptied, samples.shrunk,
    )  # fmt: skip
    rebuild = replace(samples.clean(), name="rebuild", exit_code=10, counts={"rebuildable": 1})
    alone = [make() for make in made] + [rebuild]
    return alone + [
        samples.behind(replace(make(), name=f"{make().name}-{parted}"), parted) for make in made for parted in (False, True)
    ]


def test_no_worse_code_stands_below_a_better_one_nor_in_a_milder_colour() -> None:
    fleet = every_kind()
    ranked = most_dangerous_first(fleet)
    codes = [outcome.exit_code for outcome, _ in ranked]
    assert codes == sorted(codes, key=[20, 3, 10, 0].index) and set(codes) == {20, 3, 10, 0}
    rows = [row.split() for row in summary_text(samples.RUN, fleet, "/out").splitlines()[1 : len(fleet) + 1]]
    assert [int(row[0]) for row in rows] == codes
    colours = [style_of(judgement.kind, outcome.exit_code) for outcome, judgement in ranked]
    mildness = ["stop", "unknown", "care", "safe"]
    worst = {code: min(mildness.index(style) for c, style in zip(codes, colours, strict=True) if c == code) for code in codes}
    mildest = {code: max(mildness.index(style) for c, style in zip(codes, colours, strict=True) if c == code) for code in codes}
    assert mildest[20] < worst[3] and mildest[3] < worst[10]
    page = index_of(fleet)
    badges = [badge["class"].split("c-")[1] for badge in page.all("span") if "badge" in badge.get("class", "")]
    assert badges == colours
    scarred = index_of([samples.clean(), samples.not_audited(), samples.already_damaged()])
    assert "1 of 3 stores is already damaged; a start makes nothing worse" in scarred.text
    assert [a["href"] for a in scarred.all("a")] == [f"{name}/report.html" for name in ("scarred", "gone", "calm")]


def test_copies_of_one_broker_stand_by_what_a_start_of_each_would_do() -> None:
    """There a copy that is whole and needs a rebuild comes before one that is consistent and lacks messages."""
    rebuild = replace(samples.behind(samples.clean()), name="master", exit_code=10, counts={"rebuildable": 1})
    slave = samples.behind(samples.clean())
    text = index_of([slave, rebuild]).text
    groups = text[text.index("Copies of one broker") :]
    assert 0 < groups.index("rebuild") < groups.index("not as master")


def test_copies_of_one_broker_stand_side_by_side() -> None:
    fleet = [samples.damaged(), samples.clean()]
    for outcome in fleet:
        outcome.replica_group = "broker-a"
    text = index_of(fleet).text
    assert "Copies of one broker" in text
    assert "Copies of one broker" not in index_of(fleet[:1]).text


# ---- what producers wrote ------------------------------------------------------------------------------------------


def test_no_key_tag_property_or_body_reaches_a_result_whatever_is_damaged(tmp_path: Path) -> None:
    builder = builders.StoreBuilder("5.3.3", builders.Sizes(segment=1 << 14))
    own = {"keys": "SECRETkey SECRETother", "tags": "SECRETtag", "uniq": "SECRETuniq", "properties": (("color", "SECRETvalue"),)}
    for number in range(200):
        builder.put(builders.Message(f"t{number % 3}", body=b"SECRETbody" * 9, **own))  # type: ignore[arg-type]
    rng, codes = random.Random(7), set()
    for number in range(12):
        root = tmp_path / str(number)
        store = builder.write(root)
        for _ in range(6):
            record = rng.choice(store.records)
            damage.invert_byte(store.segment_of(record), store.position_of(record) + rng.randrange(record.size))
        outcome = audit(root, "5.3.3", store.broker_conf).outcome
        codes |= {finding.code for finding in outcome.findings}
        written = [
            *report_html(outcome),
            *index_html(samples.RUN, [outcome]),
            plan_json(outcome),
            *findings_jsonl(outcome.findings),
        ]
        assert "SECRET" not in "".join(written) + summary_text(samples.RUN, [outcome], "/out")
    assert {"commitlog_damaged", "message_disputed", "index_entry_wrong", "properties_malformed"} <= codes
