package cli

import "testing"

const standing = `{"destinations":[
	{"name":"app","kind":"http","state":"down","queued":812,"leased":1,"dead":3,"oldest_due":"2026-11-30T11:02:00.000Z","paused_at":null,"down_since":"2026-11-30T11:02:00.000Z","probes":7,"next_probe_at":"2026-11-30T14:00:00.000Z"},
	{"name":"crm","kind":"http","state":"paused","queued":0,"leased":0,"dead":0,"oldest_due":null,"paused_at":"2026-11-30T13:00:00.000Z","down_since":null,"probes":0,"next_probe_at":null},
	{"name":"agent","kind":"pull","state":"up","queued":0,"leased":2,"dead":0,"oldest_due":null,"paused_at":null,"down_since":null,"probes":0,"next_probe_at":null}]}`

func TestDestinationsTellHowTheyStand(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/destinations", 200, standing)
	s.run(t, "destinations").want(t, 0, `app    http  down since 2026-11-30 11:02:00, 7 probes in vain  812 queued  1 running  3 dead  oldest due 2026-11-30 11:02:00
crm    http  paused since 2026-11-30 13:00:00                  0 queued  0 running  0 dead
agent  pull  up                                                0 queued  2 running  0 dead
`)
	s.runIn(t, "es", "destinations", "list").want(t, 0, `app    http  caído desde 2026-11-30 11:02:00, 7 sondeos en vano  812 en cola  1 en curso  3 fallidos  el más antiguo vencía el 2026-11-30 11:02:00
crm    http  en pausa desde 2026-11-30 13:00:00                  0 en cola  0 en curso  0 fallidos
agent  pull  en marcha                                           0 en cola  2 en curso  0 fallidos
`)
}

func TestADestinationIsPausedResumedAndProbed(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("POST /api/v1/destinations/app/pause", 200, `{"name":"app"}`)
	s.answer("POST /api/v1/destinations/app/resume", 200, `{"name":"app"}`)
	s.answer("POST /api/v1/destinations/app/probe", 409, problemOf("not-down", "Conflict", "a probe is for a destination that is down"))
	s.answer("POST /api/v1/destinations/nowhere/pause", 404, problemOf("not-found", "Not Found", ""))
	s.run(t, "pause", "app").want(t, 0, "app is paused\n")
	s.run(t, "destinations", "pause", "app", "--json").want(t, 0, `{"name":"app"}`+"\n")
	s.runIn(t, "es", "resume", "app").want(t, 0, "app sigue adelante\n")
	if r := s.run(t, "destinations", "probe", "app"); r.code != 1 || r.out != "" {
		t.Errorf("%+v", r)
	}
	if r := s.run(t, "pause", "nowhere"); r.code != 3 || r.out != "" {
		t.Errorf("%+v", r)
	}
	if r := s.run(t, "pause"); r.code != 2 {
		t.Errorf("%+v", r)
	}
}
