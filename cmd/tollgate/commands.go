package main

// commandLine is the grammar of the command line; the settings' flags join it.
type commandLine struct {
	Config string `help:"Settings file (YAML); also TOLLGATE_CONFIG." placeholder:"FILE"`

	Serve   serveCommand   `cmd:"" help:"Run the service; on an empty database it sets itself up."`
	Apply   applyCommand   `cmd:"" help:"Check a catalog file, show what it changes and make it current."`
	Catalog catalogCommand `cmd:"" help:"Print the current catalog."`
	Account accountCommand `cmd:"" help:"Open accounts, credit them, change them."`
	Key     keyCommand     `cmd:"" help:"Make API keys, change them, delete them."`
	Webhook webhookCommand `cmd:"" help:"Set where an account receives its events, and look at its deliveries."`
	Audit   auditCommand   `cmd:"" help:"Prove the books: exit 1 if anything differs."`
	Version versionCommand `cmd:"" help:"Print version, commit and Go version."`
}

// accountCommand are the commands about accounts.
type accountCommand struct {
	Create  accountCreate  `cmd:"" help:"Open an account."`
	List    accountList    `cmd:"" help:"List accounts."`
	Get     accountGet     `cmd:"" help:"Show an account."`
	Change  accountChange  `cmd:"" help:"Change an account."`
	Credit  accountCredit  `cmd:"" help:"Add to the balance; a negative amount takes back."`
	Entries accountEntries `cmd:"" help:"List the money movements of an account, newest first."`
	Disable accountDisable `cmd:"" help:"Stop all keys of an account."`
	Enable  accountEnable  `cmd:"" help:"Let an account's keys work again."`
}

// keyCommand are the commands about API keys.
type keyCommand struct {
	Create  keyCreate  `cmd:"" help:"Make a key; its value is shown this once."`
	List    keyList    `cmd:"" help:"List the keys of an account."`
	Change  keyChange  `cmd:"" help:"Change a key's name, limits and lists."`
	Disable keyDisable `cmd:"" help:"Stop a key."`
	Enable  keyEnable  `cmd:"" help:"Let a key work again."`
	Delete  keyDelete  `cmd:"" help:"Delete a key for ever."`
}

// webhookCommand are the commands about webhooks.
type webhookCommand struct {
	Get        webhookGet        `cmd:"" help:"Show an account's address, chosen types and signing secret."`
	Set        webhookSet        `cmd:"" help:"Set the address, the chosen types and the level of balance.low; what is left out is none."`
	Roll       webhookRoll       `cmd:"" help:"Make a new signing secret; the old one stops working at once."`
	Test       webhookTest       `cmd:"" help:"Send a test event now and show the answer."`
	Deliveries webhookDeliveries `cmd:"" help:"List the deliveries of an account, newest first."`
	Resend     webhookResend     `cmd:"" help:"Send a delivery again now."`
}
