"""What a started broker does to a copy by itself in its first day: pure functions of what an audit has read and of the moment.

* `first_day`: all parts together; `plan_section`: as plan.json has it.
* `retention`: segments that are deleted, by `cleaning` and its `cleaning_rules`; `unread`: what groups have not consumed of them.
* `timers`, `delays`: what is delivered. `transactions`: half messages that are given up.
* `registration`: whether the broker ever registers. `role`: whether it does what a master does.
* `after_start`: whether a store on which a broker was started is what its plan has predicted.
"""
