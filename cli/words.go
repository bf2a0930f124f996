package cli

// catalogue holds every text that people read, by language. Both have the same keys
// and the same gaps: a test compares them. JSON and logs are English always.
var catalogue = map[string]map[string]string{"en": english, "es": spanish}

// examples stand first in every help; they are the same in all languages.
var examples = map[string]string{
	"root":           "  acuse serve\n  acuse list --state dead",
	"serve":          "  acuse serve\n  acuse serve --config /etc/acuse/acuse.yaml",
	"check":          "  acuse check\n  acuse check --config /etc/acuse/acuse.yaml",
	"config":         "  acuse config show\n  acuse config show --json",
	"config.show":    "  acuse config show\n  acuse config show --json",
	"config.example": "  acuse config example\n  acuse config example > acuse.yaml",
	"demo":           "  acuse demo\n  acuse demo --for 60s",
	"version":        "  acuse version\n  acuse version --json",
	"health":         "  acuse health\n  acuse health --data-dir /var/lib/acuse",
	"status":         "  acuse status\n  acuse status --json",
	"list":           "  acuse list --state dead\n  acuse list --source stripe --since 2h",
	"show":           "  acuse show 10482\n  acuse show 10482 --json",
	"body":           "  acuse body 10482\n  acuse body 10482 > event.json",
	"tail":           "  acuse tail\n  acuse tail --source stripe --body",
	"resend":         "  acuse resend 10482\n  acuse resend --state dead --destination app --since 2h",
	"cancel":         "  acuse cancel 10482\n  acuse cancel 10482 --destination app",
	"dead":           "  acuse dead\n  acuse dead --json",
	"rejections":     "  acuse rejections\n  acuse rejections --source stripe",
	"release":        "  acuse release --source stripe --dry-run\n  acuse release 10482",
	"test":           "  acuse test stripe\n  acuse test stripe --type invoice.paid --deliver",
	"token":          "  acuse token create ci --scope read\n  acuse token list",
	"token.create":   "  acuse token create ci --scope read --scope body --expires 30d\n  acuse token create worker --scope pull:agent",
	"token.list":     "  acuse token list\n  acuse token list --json",
	"token.revoke":   "  acuse token list\n  acuse token revoke k3v9x2m4q7tz",
	"user":           "  acuse user add ana\n  acuse user list",
	"user.add":       "  acuse user add ana\n  acuse user add eva --role viewer < password.txt",
	"user.password":  "  acuse user password ana\n  acuse user password ana < password.txt",
	"user.list":      "  acuse user list\n  acuse user list --json",
	"user.remove":    "  acuse user list\n  acuse user remove eva",
	"setup_link":     "  acuse setup-link\n  acuse setup-link --data-dir /var/lib/acuse",
	"backup":         "  acuse backup acuse-backup.db\n  acuse backup /mnt/backup/acuse.db --quiet",
	"verify":         "  acuse verify acuse-backup.db\n  acuse verify acuse-20260101T000000Z.db.age --identity key.txt",
	"restore":        "  acuse restore acuse-backup.db\n  acuse restore acuse-backup.db --into /var/lib/acuse",
	"migrate":        "  acuse migrate --from sqlite --to bbolt\n  acuse migrate --from bbolt --to sqlite --config /etc/acuse/acuse.yaml",
	"export":         "  acuse export > archive.jsonl\n  acuse export --since 30d --format csv > archive.csv",
	"import":         "  acuse import archive.jsonl\n  acuse export | ssh OTHER acuse import -",
	"erase":          "  acuse erase --resource cus_9s6XKzkNRiz8i3 --dry-run\n  acuse erase --event evt_1 --source stripe",
	"provider":       "  acuse provider list\n  acuse provider show stripe",
	"provider.list":  "  acuse provider list\n  acuse provider list --json",
	"provider.show":  "  acuse provider show stripe\n  acuse provider show github --json",
	"provider.test":  "  acuse provider test vectors/stripe.json\n  acuse provider test vectors/",

	"rejections.show":    "  acuse rejections show 12\n  acuse rejections show 12 --json",
	"rejections.recheck": "  acuse rejections recheck stripe --secret-file new-secret.txt\n  acuse rejections recheck stripe --tolerance 30m --deliver",
}
