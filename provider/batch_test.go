package provider

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// Where every item is signed for itself, one forged item refuses the request, wherever it
// stands, and good ones pass as events of their own.
func TestP5EveryItemOfASignedBatchIsVerified(t *testing.T) {
	t.Parallel()
	c := checker(t, "adyen", Settings{Secrets: []string{"00ff00ff"}})
	item := func(ref, amount string) string {
		return `{"NotificationRequestItem":{"pspReference":"` + ref + `","merchantAccountCode":"m","merchantReference":"r","amount":{"value":` +
			amount + `,"currency":"EUR"},"eventCode":"AUTHORISATION","success":"true","additionalData":{"hmacSignature":"x"}}}`
	}
	signed := func(ref string) string {
		r := post([]byte(`{"live":"false","notificationItems":[` + item(ref, "100") + `]}`))
		if err := c.Sign(r, 1, caseNow); err != nil {
			t.Fatal(err)
		}
		return gjson.GetBytes(r.Body, "notificationItems.0").Raw
	}
	envelope := func(items ...string) *Request {
		return post([]byte(`{"live":"false","notificationItems":[` + strings.Join(items, ", ") + `]}`))
	}
	res, err := c.Receive(envelope(signed("a"), signed("b"), signed("c")), caseNow)
	if err != nil || len(res.Events) != 3 || res.Events[2].ID != "c:AUTHORISATION:true" {
		t.Fatalf("three good items: %v %+v", err, res)
	}
	forged := strings.Replace(signed("c"), `"value":100`, `"value":1`, 1)
	for i := range 3 {
		items := []string{signed("a"), signed("b"), signed("d")}
		items[i] = forged
		if _, err := c.Receive(envelope(items...), caseNow); reasonOf(err) != SignatureMismatch {
			t.Errorf("item %d forged: %v", i, err)
		}
		items[i] = item("e", "1")
		if _, err := c.Receive(envelope(items...), caseNow); reasonOf(err) != SignatureMismatch {
			t.Errorf("item %d unsigned: %v", i, err)
		}
	}
}
