"""The same with Airflow: dynamic task mapping over the pieces of the plan.

Needs apache-airflow-providers-cncf-kubernetes; BashOperator works the same on workers that
have the program.
"""

from datetime import datetime, timedelta

from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk import dag, task

TRACES = "s3://my-traces/nightly?region=eu-west-1"
OUTPUTS = "s3://my-traces/nightly-fixed?region=eu-west-1"
PLAN = "s3://my-traces/nightly-fixed/batch-plan.ndjson?region=eu-west-1"
PIECES = 400


@dag(schedule="17 3 * * *", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1)
def traces():
    pod = dict(image="ghcr.io/tracefix/tracefix:1.0", cmds=["tracefix"], service_account_name="traces")

    plan = KubernetesPodOperator(
        task_id="plan", name="traces-plan", retries=3, **pod,
        arguments=["batch", "plan", TRACES, "-o", OUTPUTS, "--pieces", str(PIECES)],
    )

    @task
    def pieces():
        return [["batch", "--manifest", PLAN, "--piece", str(n), "-o", OUTPUTS, "--for-merge"] for n in range(PIECES)]

    piece = KubernetesPodOperator.partial(
        task_id="piece", name="traces-piece", retries=10, retry_delay=timedelta(seconds=30), max_active_tis_per_dag=20, **pod,
    ).expand(arguments=pieces())

    merge = KubernetesPodOperator(
        task_id="merge", name="traces-merge", **pod,
        arguments=["batch", "merge", OUTPUTS, "-o", OUTPUTS, "--force"],
    )

    plan >> piece >> merge


traces()
