"""The messages that a start would lose, for those who want to send them again.

* `segment_loss`: which rows of a segment are lost, and how.
* `lost_places`: an audit -> that of every segment.
* `spared`: which lost delayed and timer messages need not be sent: their delivered copy stays.
* `sendable`: a lost message in the form in which a producer can send it again.
"""
