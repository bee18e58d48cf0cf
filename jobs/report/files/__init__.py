"""Files for machines. docs/contract.md says what each promises.

* `plan_json`, `findings_jsonl`, `result_json`, `replicas_json`: what an audit leaves.
* `json_text`: any name in a store as JSON.
* `prometheus`: metrics.
"""
