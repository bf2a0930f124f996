package admin

import (
	"net/http"
	"time"

	"acuse/problem"
	"acuse/store"
)

// Erased counts what was erased, or would be.
type Erased struct {
	DryRun     bool  `json:"dry_run"`
	Deliveries int   `json:"deliveries"`
	Shared     int   `json:"shared"`     // further deliveries that lost their part of a batch
	Cancelled  int   `json:"cancelled"`  // jobs
	Rejections int   `json:"rejections"` // removed whole
	Bytes      int64 `json:"bytes"`
	Traces     bool  `json:"traces"` // something kept the files from being cleaned: erase again
}

// apiErase removes the contents of a resource or an event for good; the store audits it.
func (a *Admin) apiErase(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Resource string `json:"resource"`
		Event    string `json:"event"`
		Source   string `json:"source"`
		Reason   string `json:"reason"`
		DryRun   bool   `json:"dry_run"`
	}
	if err := readInput(w, r, &in); err != nil {
		return err
	}
	switch {
	case a.opt.Erase == nil:
		return errAbsent
	case (in.Resource == "") == (in.Event == ""):
		return badInput("give either resource or event")
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour))
	out, err := a.opt.Erase(r.Context(), store.Erasure{Resource: in.Resource, EventID: in.Event, Source: in.Source, Reason: in.Reason, DryRun: in.DryRun,
		By: actor(r, grantOf(r)), At: a.opt.Now().UTC()})
	if err != nil {
		return err
	}
	problem.WriteJSON(w, http.StatusOK, Erased{in.DryRun, out.Deliveries, out.Shared, out.Cancelled, out.Rejections, out.Bytes, out.Traces})
	return nil
}
