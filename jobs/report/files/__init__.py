"""Files for machines. docs/contract.md says what each promises.

* `store_json`, `result_json`: plan.json, findings.jsonl and replicas.json; result.json.
* `json_text`: any name in a store as JSON.
* `prometheus`: metrics; `summary_markdown`, `junit_xml`: for CI.
"""
