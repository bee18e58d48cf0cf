"""What a copy says in the morning: which groups lag, and where traffic was. Run it with

    ./spark-submit.sh run examples/scripts/morning.py copies/broker-a [MOST [RELEASE]]

It ends with 1 where a group has more than MOST (10,000) entries left to consume. Without RELEASE the newest known is assumed,
which standard error says. It also says where a start takes no offsets of groups: an empty table then does not mean that nobody
lags. With the wheel it is `rmq-audit run`, and the import is `from rocketmq_store_audit import sources`, as in a session of your
own.
"""

import sys

from pyspark.sql import SparkSession

from jobs import sources

spark = SparkSession.builder.getOrCreate()
sources.register(spark)

store, most = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
release = {"release": sys.argv[3]} if len(sys.argv) > 3 else {}
behind = sources.lag(spark, store, **release).where("lag > 0")
behind.show(20, truncate=False)
sources.traffic(spark, store, per="minute", **release).show(20, truncate=False)
half = sources.read(spark, "transactions", store, columns="state,producer_group", **release)
half.groupBy("producer_group", "state").count().orderBy("producer_group", "state").show()

if behind.where(f"lag > {most}").count():
    sys.exit(f"{store}: more than {most:,} entries are left to consume")
