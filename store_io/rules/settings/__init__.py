"""The broker's settings.

* `given_settings`: a value of broker.conf -> what the release takes it for.
* `unsafe_settings`: those under which a broker harms what it writes from now on.
"""
