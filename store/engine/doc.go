// Package engine holds what the storage engines do alike: the lock on the data folder,
// the watch over its volume, and what is kept in memory beside the file. It knows
// nothing of tables or buckets.
package engine
