"""An audit for commands on single messages: run here where the store is small, else through Spark. Nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.cli.stores import StoreArgument
from jobs.runtime.spark_start import LazySpark
from store_io.base.tasks import run_task
from store_io.messages.lost.segment_loss import UNSURE
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation

if TYPE_CHECKING:  # what audits is loaded where an audit is wanted: most commands on single messages want none
    from store_io.audit.audit_store import StoreAudit
    from store_io.messages.lost.lost_places import LostPlaces


def audited(request: AuditRequest, spark: LazySpark) -> StoreAudit:
    """The audit of a store, at its end."""
    from store_io.audit.audit_store import StoreAudit, run_rounds

    audit = StoreAudit(request)
    first = audit.first_tasks()
    if not audit.failed and spark.wanted(sum(f.size for f in audit.segment_files)):
        from jobs.tasks.runner import Runner

        runner = Runner(spark.session.context, lambda *_: None)
        run_rounds([(audit, first)], lambda tasks: runner.answers(tasks, "audit"))
    else:
        run_rounds([(audit, first)], lambda tasks: [run_task(task) for task in tasks])
    return audit


def request_of(store: StoreArgument) -> AuditRequest:
    """The audit of a store that a command line names."""
    return AuditRequest(
        store.name, StoreLocation(store.path, store.parts), store.release, store.broker_conf, release_from=store.release_from
    )


def places_of(request: AuditRequest, spark: LazySpark, to_send: bool = False) -> LostPlaces:
    """Return the messages that a start would take of the store. Raises StoreError if that is not known.

    to_send: also says which of them are not to be sent again.
    """
    from store_io.messages.lost.lost_places import lost_places
    from store_io.messages.lost.spared import with_spared

    audit = audited(request, spark)
    places = lost_places(audit)
    return with_spared(audit, places) if to_send else places


def loss_sentence(places: LostPlaces) -> str:
    """The store's totals, as plan.json counts them."""
    text = f"a start of RocketMQ {places.release} would lose {places.messages:,} of the messages in this copy"
    if places.undelivered:
        text += f", and never deliver {places.undelivered:,} timer messages that it keeps"
        if places.listed_timers < places.undelivered:
            text += "; these are not listed: there are too many timers to be held together"
    if len(places.spared.places):
        text += f"; {len(places.spared.places):,} delayed and timer messages of these are not to be sent again, as why_not says"
    if places.spared.unsure_from is not None:
        text += f"; from physical offset {places.spared.unsure_from} on {UNSURE}: why_not is set for all of them"
    return text
