# One image with everything: docker build -t store-audit . (docs/install.md has the line that uses it.)
# The set-up is spark-submit.sh's own, so the image has the versions of pyproject.toml and constraints.txt.
FROM debian:bookworm-slim

RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates openjdk-17-jre-headless python3 python3-venv \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home audit

WORKDIR /opt/store-audit
COPY pyproject.toml constraints.txt spark-submit.sh LICENSE ./
COPY schemas schemas
COPY store_io store_io
COPY jobs jobs
COPY examples/damaged-store examples/damaged-store
COPY examples/schedule examples/schedule

# Made by the user who runs it: compiled code is used from a folder of one's own alone.
USER audit
# SPARK_LOCAL_IP: without a network the container's own name leads nowhere, and Spark would not start.
ENV STORE_AUDIT_HOME=/home/audit/environment PIP_NO_CACHE_DIR=1 SPARK_LOCAL_IP=127.0.0.1
RUN ./spark-submit.sh explain-code no_room

WORKDIR /home/audit
ENTRYPOINT ["/opt/store-audit/spark-submit.sh"]
CMD ["--help"]
