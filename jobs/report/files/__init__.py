"""Files for machines. docs/contract.md says what each promises.

* `result_files`: result.json; plan.json, findings.jsonl, config.json and replicas.json.
* `json_text`: any name in a store as JSON.
* `ci_files`: metrics, and summaries for CI.
"""
