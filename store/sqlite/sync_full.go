//go:build !syncoff && !syncnormal

package sqlite

// synchronous makes every commit wait until it is on the disk.
const synchronous = "FULL"
