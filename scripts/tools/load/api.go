package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Delivery is what the tools read of the API's deliveries.
type Delivery struct {
	ID         int64  `json:"id"`
	EventID    string `json:"event_id"`
	State      string `json:"state"`
	Duplicates int    `json:"duplicates"`
	Jobs       []struct {
		ID       int64  `json:"id"`
		State    string `json:"state"`
		Attempts int    `json:"attempts"`
		Key      string `json:"idempotency_key"`
	} `json:"jobs"`
}

// Call sends a JSON request to the private listener and decodes the answer; a nil
// in sends none, a nil out reads none.
func (a *Acuse) Call(method, path string, in, out any) error {
	b, err := a.call(method, path, in)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(b, out)
}

// Body reads the raw bytes of a delivery.
func (a *Acuse) Body(delivery int64) ([]byte, error) {
	return a.call("GET", fmt.Sprintf("/api/v1/deliveries/%d/body", delivery), nil)
}

func (a *Acuse) call(method, path string, in any) ([]byte, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, "http://"+a.Admin+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.Token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, res.Status, b)
	}
	return b, nil
}

// Deliveries walks the whole archive, newest first.
func (a *Acuse) Deliveries(each func(Delivery)) error {
	path := "/api/v1/deliveries?limit=500"
	for next := ""; ; {
		var page struct {
			Deliveries []Delivery `json:"deliveries"`
			Next       string     `json:"next"`
		}
		if err := a.Call("GET", path+next, nil, &page); err != nil {
			return err
		}
		for _, d := range page.Deliveries {
			each(d)
		}
		if page.Next == "" {
			return nil
		}
		next = "&before=" + page.Next
	}
}
