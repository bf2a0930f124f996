package cli

// The shapes of the API, as far as the command line reads them. What --json prints
// is the API's own text.

type delivery struct {
	ID          int64               `json:"id"`
	Source      string              `json:"source"`
	Provider    string              `json:"provider"`
	EventID     string              `json:"event_id"`
	Type        string              `json:"type"`
	Resource    string              `json:"resource"`
	State       string              `json:"state"`
	ReceivedAt  string              `json:"received_at"`
	Duplicates  int                 `json:"duplicates"`
	LastDup     *string             `json:"last_duplicate_at"`
	BodyDiffers int                 `json:"body_differs"`
	Test        bool                `json:"test"`
	Size        int64               `json:"size"`
	SecretSlot  *int                `json:"secret_slot"`
	Jobs        []job               `json:"jobs"`
	Quarantine  *string             `json:"quarantine"`
	PayloadGone bool                `json:"payload_gone"`
	Orders      []orderPlace        `json:"orders"`
	Headers     map[string][]string `json:"headers"`
	Attempts    []attempt           `json:"attempts"`
}

type job struct {
	ID             int64   `json:"id"`
	Destination    string  `json:"destination"`
	State          string  `json:"state"`
	Attempts       int     `json:"attempts"`
	DueAt          *string `json:"due_at"`
	SettledAt      *string `json:"settled_at"`
	LastStatus     *int    `json:"last_status"`
	LastError      *string `json:"last_error"`
	LastUS         *int64  `json:"last_duration_us"`
	IdempotencyKey string  `json:"idempotency_key"`
	Rule           *string `json:"rule"`
	RuleError      *string `json:"rule_error"`
	Order          *string `json:"order"`
	Moved          bool    `json:"moved"`
	SupersededBy   *int64  `json:"superseded_by"`
}

type orderPlace struct {
	Job   int64  `json:"job"`
	Ahead int    `json:"ahead"`
	Head  int64  `json:"head"`
	Since string `json:"since"`
	State string `json:"state"`
}

type attempt struct {
	Job        int64   `json:"job"`
	N          int     `json:"attempt"`
	StartedAt  *string `json:"started_at"`
	Outcome    string  `json:"outcome"`
	Status     *int    `json:"status"`
	Error      *string `json:"error"`
	DurationUS int64   `json:"duration_us"`
}

type status struct {
	Name       string  `json:"name"`
	Version    string  `json:"version"`
	DataDir    string  `json:"data_dir"`
	StartedAt  *string `json:"started_at"`
	Engine     string  `json:"engine"`
	Bytes      int64   `json:"bytes"`
	Free       int64   `json:"free"`
	Writable   bool    `json:"writable"`
	Error      *string `json:"error"`
	Deliveries int64   `json:"deliveries"`
	Queued     int64   `json:"queued"`
	Leased     int64   `json:"leased"`
	Dead       int64   `json:"dead"`
	Quarantine int64   `json:"quarantined"`
	OldestDue  *string `json:"oldest_due"`
	Newest     *string `json:"newest_received_at"`
	Rejections int64   `json:"rejections"`
	LastBackup *string `json:"last_backup_at"`
	Growth     *int64  `json:"growth_bytes_per_day"`
	CapOn      *string `json:"cap_on"`
	FullOn     *string `json:"full_on"`
	Removable  *int64  `json:"removable_deliveries"`
	Late       bool    `json:"backup_late"`
}

type deadGroup struct {
	Destination string  `json:"destination"`
	Reason      string  `json:"reason"`
	Status      *int    `json:"status"`
	Class       *string `json:"class"`
	Jobs        int64   `json:"jobs"`
	FirstAt     *string `json:"first_at"`
	LastAt      *string `json:"last_at"`
}

type rejection struct {
	ID        int64   `json:"id"`
	Source    string  `json:"source"`
	Reason    string  `json:"reason"`
	Detail    *string `json:"detail"`
	Remote    string  `json:"remote"`
	FirstAt   *string `json:"first_at"`
	LastAt    *string `json:"last_at"`
	Count     int     `json:"count"`
	Status    int     `json:"status"`
	Size      int64   `json:"size"`
	Diagnosis string  `json:"diagnosis"`
	Method    string  `json:"method"`
	Target    string  `json:"target"`
	Body      []byte  `json:"body_base64"`

	Headers map[string][]string `json:"headers"`
}

type rechecked struct {
	Checked     int `json:"checked"`
	WouldVerify int `json:"would_verify"`
	Delivered   int `json:"delivered"`
	Duplicates  int `json:"duplicates"`
	Quarantined int `json:"quarantined"`
}

type tokenInfo struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Agent     string   `json:"agent"`
	Scopes    []string `json:"scopes"`
	CreatedAt *string  `json:"created_at"`
	LastUsed  *string  `json:"last_used_at"`
	ExpiresAt *string  `json:"expires_at"`
	Secret    string   `json:"secret"`
}

type userInfo struct {
	Name      string  `json:"name"`
	Role      string  `json:"role"`
	CreatedAt *string `json:"created_at"`
}

type testStep struct {
	Step string `json:"step"`
	Text string `json:"text"`
	Ms   int64  `json:"ms"`
	OK   bool   `json:"ok"`
}
