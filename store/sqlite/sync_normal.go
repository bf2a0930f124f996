//go:build syncnormal

package sqlite

// synchronous of a build that syncs at checkpoints alone. It exists to show that
// scripts/powercut notices such a build; nothing else may use the tag.
const synchronous = "NORMAL"
