//go:build !syncoff

package bolt

// noSync is false: every commit waits until it is on the disk.
const noSync = false
