"""The broker's settings.

* `given_settings`: a value of broker.conf -> what the release takes it for.
* `known_keys`: every name that a release reads, and the name that was meant.
* `unsafe_settings`: those under which a broker harms what it writes from now on.
"""
