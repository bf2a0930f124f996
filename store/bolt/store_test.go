package bolt

import (
	"testing"

	"acuse/store"
	"acuse/store/storetest"
)

func open(dir string) (store.Store, error) {
	db, err := Open(storetest.Background, dir, Options{})
	if err != nil {
		return nil, err // not a nil *DB in an interface
	}
	return db, nil
}

func TestMain(m *testing.M) { storetest.Main(m, open) } // also the child to be killed

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestDump(t *testing.T) { storetest.RunDump(t, open) }

func TestErase(t *testing.T) { storetest.RunErase(t, open, nil) }

func TestModel(t *testing.T) { storetest.Model(t, open) }

func TestP1DurableBefore2xx(t *testing.T)       { storetest.Promise(t, open, "P1") }
func TestP2OneEventOneDelivery(t *testing.T)    { storetest.Promise(t, open, "P2") }
func TestP3AtLeastOnceSameKey(t *testing.T)     { storetest.Promise(t, open, "P3") }
func TestP4OneLiveLease(t *testing.T)           { storetest.Promise(t, open, "P4") }
func TestP6NothingSilentlyDropped(t *testing.T) { storetest.Promise(t, open, "P6") }
func TestP8RestartIsRecovery(t *testing.T)      { storetest.Promise(t, open, "P8") }
