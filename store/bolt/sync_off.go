//go:build syncoff

package bolt

// noSync of a build that syncs nothing. It exists to show that scripts/powercut notices such
// a build; nothing else may use the tag.
const noSync = true
