package web

// ackBounds are the buckets of the acknowledgement time, in seconds: from the end of
// the headers to the answer.
var ackBounds = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}
