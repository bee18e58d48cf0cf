"""What Java makes of texts, as a broker reads them.

* `java_compat`: numbers and strings. `java_properties`: the lines of broker.conf. `zones`: names of time zones.
"""
